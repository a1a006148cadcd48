-- Version 1: the outbox, its dead letters, and what is known about both.
-- The words sluice_outbox..., the column names and sluice_lanes are replaced by what is configured.
-- Times are text in UTC, 'YYYY-MM-DD HH:MM:SS.SSS'; a producer may write any form that SQLite reads.

CREATE TABLE IF NOT EXISTS sluice_outbox_meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);

-- AUTOINCREMENT: without it an id would be given again once its row is gone.
CREATE TABLE IF NOT EXISTS sluice_outbox (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    topic           TEXT NOT NULL CONSTRAINT sluice_outbox_ck_topic CHECK (topic <> ''),
    entity_key      TEXT CONSTRAINT sluice_outbox_ck_key CHECK (
                        entity_key IS NULL
                        OR (typeof(entity_key) = 'text' AND length(CAST(entity_key AS BLOB)) <= 512)),
    event_type      TEXT NOT NULL DEFAULT '',
    payload         BLOB NOT NULL,
    content_type    TEXT NOT NULL DEFAULT 'application/json',
    headers         TEXT CONSTRAINT sluice_outbox_ck_headers CHECK (
                        headers IS NULL OR (json_valid(headers) AND json_type(headers) = 'object')),
    idempotency_key TEXT CONSTRAINT sluice_outbox_ck_idempotency CHECK (
                        length(CAST(idempotency_key AS BLOB)) <= 512),
    created_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    available_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
                    CONSTRAINT sluice_outbox_ck_available CHECK (julianday(available_at) IS NOT NULL),
    -- SQLite has no hash function: a sum over the first 24 and last 8 characters of the key.
    -- Without a key there is no order: spread by id.
    lane            INTEGER GENERATED ALWAYS AS (
                        ((CASE WHEN entity_key IS NULL THEN id ELSE
                          ( length(entity_key)
                          + ifnull(unicode(substr(entity_key, 1, 1)), 0) * 31
                          + ifnull(unicode(substr(entity_key, 2, 1)), 0) * 1009
                          + ifnull(unicode(substr(entity_key, 3, 1)), 0) * 30011
                          + ifnull(unicode(substr(entity_key, 4, 1)), 0) * 900001
                          + ifnull(unicode(substr(entity_key, 5, 1)), 0) * 27000011
                          + ifnull(unicode(substr(entity_key, 6, 1)), 0) * 810000023
                          + ifnull(unicode(substr(entity_key, 7, 1)), 0) * 131
                          + ifnull(unicode(substr(entity_key, 8, 1)), 0) * 17159
                          + ifnull(unicode(substr(entity_key, 9, 1)), 0) * 2248091
                          + ifnull(unicode(substr(entity_key, 10, 1)), 0) * 294499921
                          + ifnull(unicode(substr(entity_key, 11, 1)), 0) * 613
                          + ifnull(unicode(substr(entity_key, 12, 1)), 0) * 74093
                          + ifnull(unicode(substr(entity_key, 13, 1)), 0) * 9000011
                          + ifnull(unicode(substr(entity_key, 14, 1)), 0) * 104729
                          + ifnull(unicode(substr(entity_key, 15, 1)), 0) * 1299709
                          + ifnull(unicode(substr(entity_key, 16, 1)), 0) * 15485863
                          + ifnull(unicode(substr(entity_key, 17, 1)), 0) * 179424673
                          + ifnull(unicode(substr(entity_key, 18, 1)), 0) * 37
                          + ifnull(unicode(substr(entity_key, 19, 1)), 0) * 1013
                          + ifnull(unicode(substr(entity_key, 20, 1)), 0) * 30013
                          + ifnull(unicode(substr(entity_key, 21, 1)), 0) * 900007
                          + ifnull(unicode(substr(entity_key, 22, 1)), 0) * 27000013
                          + ifnull(unicode(substr(entity_key, 23, 1)), 0) * 810000037
                          + ifnull(unicode(substr(entity_key, 24, 1)), 0) * 137
                          + ifnull(unicode(substr(entity_key, -1, 1)), 0) * 17167
                          + ifnull(unicode(substr(entity_key, -2, 1)), 0) * 2248093
                          + ifnull(unicode(substr(entity_key, -3, 1)), 0) * 294499957
                          + ifnull(unicode(substr(entity_key, -4, 1)), 0) * 617
                          + ifnull(unicode(substr(entity_key, -5, 1)), 0) * 74099
                          + ifnull(unicode(substr(entity_key, -6, 1)), 0) * 9000041
                          + ifnull(unicode(substr(entity_key, -7, 1)), 0) * 104743
                          + ifnull(unicode(substr(entity_key, -8, 1)), 0) * 1299721
                          ) % 1000003
                        END % sluice_lanes) + sluice_lanes) % sluice_lanes
                    ) VIRTUAL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_error      TEXT,
    leased_until    TEXT,
    epoch           INTEGER NOT NULL DEFAULT 0,
    worker          TEXT
);

CREATE UNIQUE INDEX IF NOT EXISTS sluice_outbox_ix_idempotency
    ON sluice_outbox (idempotency_key) WHERE idempotency_key IS NOT NULL;

-- May hold whatever an adopted table held, NULLs included.
CREATE TABLE IF NOT EXISTS sluice_outbox_dead (
    dead_id         INTEGER PRIMARY KEY AUTOINCREMENT,
    id              INTEGER NOT NULL,
    topic           TEXT,
    entity_key      TEXT,
    event_type      TEXT,
    payload         BLOB,
    content_type    TEXT,
    headers         TEXT,
    idempotency_key TEXT,
    created_at      TEXT,
    died_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    attempts        INTEGER NOT NULL,
    last_error      TEXT,
    epoch           INTEGER NOT NULL
);

INSERT INTO sluice_outbox_meta (name, value)
VALUES ('schema_version', '1'), ('lanes', CAST(sluice_lanes AS TEXT))
ON CONFLICT DO NOTHING;
