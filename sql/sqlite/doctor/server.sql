-- There is no server: the library is all there is.
-- in:  none
-- out: version_number int8, version text, standby bool
SELECT 0, '', 0 WHERE 0;
