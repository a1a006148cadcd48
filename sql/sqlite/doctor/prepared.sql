-- There are none.
-- in:  none
-- out: gid text, owner text, age_us int8
SELECT '', '', 0 WHERE 0;
