-- Nothing is ever worth it.
-- in:  none
-- out: rows int8
SELECT 0;
