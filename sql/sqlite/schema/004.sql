-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is the end of the calendar, and so is that of its key, if it
-- has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id)
 WHERE available_at = '9999-12-31 23:59:59.999';

-- At most once: what was consumed and is not known to be sent. It comes here before the first byte leaves, and goes
-- when the sink has confirmed it; nobody but an operator sends it again. May hold whatever an adopted table held.
CREATE TABLE IF NOT EXISTS sluice_outbox_consumed (
    id              INTEGER PRIMARY KEY,
    topic           TEXT,
    entity_key      TEXT,
    event_type      TEXT,
    payload         BLOB,
    content_type    TEXT,
    headers         TEXT,
    idempotency_key TEXT,
    created_at      TEXT,
    consumed_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    attempts        INTEGER NOT NULL,
    last_error      TEXT,
    epoch           INTEGER NOT NULL,
    worker          TEXT NOT NULL,
    journal         INTEGER                -- the identity of the journal that knows more; or none was kept
);

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
