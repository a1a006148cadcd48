-- Empties a segment in which nothing is left to do. 1: it is empty; 2: it would be, but for what is held; 3: somebody reads
-- it; 0: there is more in it.
-- in:  segment int8
-- out: cleared int8
SELECT sluice_outbox_clear($1::oid::regclass)::bigint;
