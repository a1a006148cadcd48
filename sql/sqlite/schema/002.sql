-- Version 2: order. Nodes, lanes, blocked keys and the leases of keys.

-- A message that may not go yet, since it is scheduled, failed, or stands behind one of its key that
-- did. Held messages are found by key and by time, the others by lane: however many are held, they
-- cost the others nothing.
ALTER TABLE sluice_outbox ADD COLUMN held INTEGER NOT NULL DEFAULT 0;

CREATE INDEX IF NOT EXISTS sluice_outbox_ix_lane ON sluice_outbox (lane, id) WHERE held = 0;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_key ON sluice_outbox (entity_key, id);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_due ON sluice_outbox (available_at) WHERE held = 1 AND entity_key IS NULL;

-- Keys that wait: for the retry or the time of their head, or for an operator (due_at far away). A
-- held message with a key always has its row here.
CREATE TABLE IF NOT EXISTS sluice_outbox_keys (
    entity_key TEXT PRIMARY KEY NOT NULL,
    lane       INTEGER NOT NULL,
    head       INTEGER NOT NULL,
    due_at     TEXT NOT NULL,
    since      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    reason     TEXT
);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_keys ON sluice_outbox_keys (due_at);

-- Strategy guard: one row for each key that a worker holds; those of a turn have the same epoch. The
-- primary key is the net: whatever goes wrong above, no key is held twice.
CREATE TABLE IF NOT EXISTS sluice_outbox_claims (
    claim   TEXT PRIMARY KEY NOT NULL, -- 'k' and the key, or 'i' and the id of one without
    epoch   INTEGER NOT NULL,
    ends_at TEXT NOT NULL,
    holder  INTEGER NOT NULL,          -- drawn by the worker when it connects
    held_by TEXT NOT NULL              -- the same for people
);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_claims ON sluice_outbox_claims (epoch);

-- A node lives until its row is deleted: by itself, or by others once lives_until has passed.
CREATE TABLE IF NOT EXISTS sluice_outbox_nodes (
    session     INTEGER PRIMARY KEY,   -- drawn at each start
    node        TEXT NOT NULL,
    strategy    TEXT NOT NULL,
    assign      TEXT NOT NULL,
    workers     INTEGER NOT NULL,
    born        INTEGER NOT NULL,      -- order of the starts
    started_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    lives_until TEXT NOT NULL,
    sent        INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    per_second  INTEGER NOT NULL DEFAULT 0
);

-- Strategy lanes: a lane is free when its owner is no node.
CREATE TABLE IF NOT EXISTS sluice_outbox_lanes (
    lane  INTEGER PRIMARY KEY,
    owner INTEGER,                     -- the node's session
    epoch INTEGER NOT NULL DEFAULT 0,
    since TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);

INSERT INTO sluice_outbox_lanes (lane)
WITH RECURSIVE n (i) AS (
    SELECT 0 UNION ALL
    SELECT i + 1 FROM n
     WHERE i + 1 < (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'lanes'))
SELECT i FROM n;

-- epoch: the last fencing token. One source for all strategies, so that an epoch never falls.
-- lanes_pause: until when no lane may be acquired, while their number changes.
INSERT INTO sluice_outbox_meta (name, value) VALUES ('epoch', '0'), ('lanes_pause', '');
UPDATE sluice_outbox_meta SET value = '2' WHERE name = 'schema_version';
