-- The write transaction is the lock: whoever is in it has every key.
-- in:  claim text[]
-- out: claim text
SELECT ?1;
