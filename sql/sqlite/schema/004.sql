-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is the end of the calendar, and so is that of its key, if it
-- has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id)
 WHERE available_at = '9999-12-31 23:59:59.999';

-- Parked by hand, at any time, also while a message of the key is in flight. `fence`: who owns the key's lane by a later
-- epoch has never seen the key otherwise; none: an operator has not parked it. `doubt`: its head at that moment, which
-- had been tried so many times.
ALTER TABLE sluice_outbox_keys ADD COLUMN fence INTEGER;
ALTER TABLE sluice_outbox_keys ADD COLUMN doubt INTEGER;
ALTER TABLE sluice_outbox_keys ADD COLUMN tried INTEGER;

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
