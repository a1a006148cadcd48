-- As many as like.
-- in:  none
-- out: most int8, reserved int8, used int8, db_most int8, db_used int8
SELECT 0, 0, 0, 0, 0 WHERE 0;
