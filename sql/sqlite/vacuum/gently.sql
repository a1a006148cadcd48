-- There is nothing to be gentle with.
-- in:  none
-- out: delay text
SELECT '0';
