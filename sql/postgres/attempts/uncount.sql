-- They were not made after all.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox o SET attempts = greatest(o.attempts - 1, 0) WHERE o.id = ANY ($1);
