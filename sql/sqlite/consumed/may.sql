-- May we run consumed/waiting, and consumed/orphans? Whoever may not write the file is told so then.
-- in:  none
-- out: looks bool, acts bool
SELECT 1, 1;
