-- Counts attempts before they are made. Whose messages they are does not matter: at worst one is counted that somebody
-- else makes.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox o SET attempts = coalesce(o.attempts, 0) + 1 WHERE o.id = ANY ($1);
