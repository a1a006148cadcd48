-- Empties a segment in which nothing is left to do; false: something is, or somebody reads it.
-- in:  segment int8
-- out: cleared bool
SELECT sluice_outbox_clear($1::oid::regclass);
