-- Nobody keeps a list of them.
-- in:  none
-- out: pid int8, app text, usr text, state text, age_us int8, pins bool, hidden bool
SELECT 0, '', '', '', 0, 0, 0 WHERE 0;
