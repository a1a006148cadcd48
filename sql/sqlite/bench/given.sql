-- Ids up to this have been given out: here by the insert itself.
-- in:  last int8
-- out: given int8
SELECT ?1;
