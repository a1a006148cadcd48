-- It was not made after all.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox SET attempts = max(attempts - 1, 0) WHERE id = ?1;
