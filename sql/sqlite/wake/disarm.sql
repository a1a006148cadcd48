-- There is nothing that would have to be let go of.
-- in:  tell int8
-- out: had bool, told text
SELECT 1, CASE WHEN ?1 > 0 THEN '' END;
