-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is infinity, and so is that of its key, if it has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id) WHERE available_at = 'infinity';

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
