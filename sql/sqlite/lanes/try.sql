-- The write transaction is the lock.
-- in:  lane int8[]
-- out: lane int8
SELECT ?1;
