-- Counts an attempt before it is made. Whose message it is does not matter: at worst one is counted that somebody
-- else makes.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox SET attempts = ifnull(attempts, 0) + 1 WHERE id = ?1;
