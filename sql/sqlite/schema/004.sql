-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is the end of the calendar, and so is that of its key, if it
-- has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id)
 WHERE available_at = '9999-12-31 23:59:59.999';

-- Delivered messages, kept for `retention`; without it, nothing is ever written here. The same id is kept once, unless
-- ids are given again: a settle must not fail for that. May hold whatever an adopted table held, NULLs included.
CREATE TABLE IF NOT EXISTS sluice_outbox_sent (
    sent_id         INTEGER PRIMARY KEY AUTOINCREMENT,
    id              INTEGER NOT NULL,
    topic           TEXT,
    entity_key      TEXT,
    event_type      TEXT,
    payload         BLOB,
    content_type    TEXT,
    headers         TEXT,
    idempotency_key TEXT,
    created_at      TEXT,
    sent_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    attempts        INTEGER NOT NULL,
    epoch           INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_sent ON sluice_outbox_sent (sent_at);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_sent_id ON sluice_outbox_sent (id);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_sent_key ON sluice_outbox_sent (entity_key, id);

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
