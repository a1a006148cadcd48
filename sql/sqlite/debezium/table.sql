-- Layout debezium: the outbox beside their table, made before schema/001 would. It takes whatever Debezium takes: a
-- message without a payload (a tombstone), a header without a value, a key of any length. What is missing here is added
-- as to any table that was there already.
CREATE TABLE IF NOT EXISTS sluice_outbox (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    topic           TEXT NOT NULL,
    entity_key      TEXT,
    event_type      TEXT NOT NULL DEFAULT '',
    payload         BLOB,
    content_type    TEXT NOT NULL DEFAULT 'application/json',
    headers         TEXT,
    idempotency_key TEXT,
    created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    available_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_error      TEXT,
    leased_until    TEXT,
    epoch           INTEGER NOT NULL DEFAULT 0,
    worker          TEXT
);
