-- Ask amcheck.
-- in:  none
-- out: complaint text
SELECT ''::text WHERE false;
