-- One lock, for all.
-- in:  none
-- out: each int8, sessions int8
SELECT 0, 0 WHERE 0;
