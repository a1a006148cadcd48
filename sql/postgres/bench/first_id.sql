-- The next id that is drawn.
-- in:  first int8
-- out: first int8
SELECT setval(pg_get_serial_sequence('sluice_outbox', btrim('id', '"')), $1, false);
