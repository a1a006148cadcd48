-- The bench has chosen ids up to this: those that are drawn come behind it.
-- in:  last int8
-- out: given int8
SELECT setval(pg_get_serial_sequence('sluice_outbox', btrim('id', '"')), $1);
