-- Nothing is ever worth it.
-- in:  sign int8
-- out: rows int8
SELECT 0 * ?1;
