-- Pages that are free are used again by themselves.
-- in:  none
-- out: may bool
SELECT 0;
