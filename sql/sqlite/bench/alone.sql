-- The file is ours alone.
-- in:  none
-- out: alone bool, foreign_schema bool
SELECT 1, 0;
