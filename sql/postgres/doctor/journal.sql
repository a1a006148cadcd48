-- There is always one.
-- in:  none
-- out: mode text
SELECT ''::text WHERE false;
