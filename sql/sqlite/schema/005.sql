-- Version 5: positions, which only PostgreSQL has. Nothing changes here but the number.
UPDATE sluice_outbox_meta SET value = '5' WHERE name = 'schema_version';
