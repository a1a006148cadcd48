-- There is no server, and nothing in between.
-- in:  none
-- out: pid int8
SELECT 0 WHERE 0;
