-- Version 2: order. Nodes, lanes, blocked keys and the leases of keys.

-- A message that may not go yet, since it is scheduled, failed, or stands behind one of its key that
-- did. Held messages are found by key and by time, the others by lane: however many are held, they
-- cost the others nothing.
ALTER TABLE sluice_outbox ADD COLUMN IF NOT EXISTS held boolean NOT NULL DEFAULT false;

-- With one hot key the statistics would say that there are few lanes, and that reading by id is as good.
ALTER TABLE sluice_outbox ALTER COLUMN lane SET (n_distinct = sluice_lanes);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_lane ON sluice_outbox (lane, id) WHERE NOT held;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_held ON sluice_outbox (entity_key, id) WHERE held;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_due ON sluice_outbox (available_at) WHERE held AND entity_key IS NULL;

-- Fencing tokens: one source for all strategies, so that an epoch never falls, also when keys move
-- to other lanes or the strategy changes.
CREATE SEQUENCE IF NOT EXISTS sluice_outbox_epoch;

-- Keys that wait: for the retry or the time of their head, or for an operator (due_at infinity). A
-- held message with a key always has its row here.
CREATE TABLE IF NOT EXISTS sluice_outbox_keys (
    entity_key text COLLATE "C" PRIMARY KEY,
    lane       integer NOT NULL,
    head       bigint NOT NULL,
    due_at     timestamptz NOT NULL,
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason     text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_keys ON sluice_outbox_keys (due_at);

-- Strategy guard: one row for each turn of a worker, with the keys that it holds. A row for each key would
-- be found more and more slowly beside an old snapshot, since the same keys come again and again; epochs do
-- not. Rows of up to a page stay in one piece.
CREATE TABLE IF NOT EXISTS sluice_outbox_claims (
    epoch   bigint PRIMARY KEY,
    ends_at timestamptz NOT NULL,
    holder  bigint NOT NULL,              -- drawn by the worker when it connects
    held_by text NOT NULL,                -- the same for people
    keys    text[] NOT NULL               -- each is 'k' and the key, or 'i' and the id of a message without
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

-- A node lives until its row is deleted: by itself, or by others once lives_until has passed.
CREATE TABLE IF NOT EXISTS sluice_outbox_nodes (
    session     bigint PRIMARY KEY,       -- drawn at each start
    node        text NOT NULL,
    strategy    text NOT NULL,
    assign      text NOT NULL,
    workers     integer NOT NULL,
    born        bigint NOT NULL,          -- order of the starts
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    lives_until timestamptz NOT NULL,
    sent        bigint NOT NULL DEFAULT 0,
    failed      bigint NOT NULL DEFAULT 0,
    per_second  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 100);

-- Strategy lanes: a lane is free when its owner is no node.
CREATE TABLE IF NOT EXISTS sluice_outbox_lanes (
    lane  integer PRIMARY KEY,
    owner bigint,                         -- the node's session
    epoch bigint NOT NULL DEFAULT 0,
    since timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);

INSERT INTO sluice_outbox_lanes (lane)
SELECT generate_series(0, m.value::integer - 1) FROM sluice_outbox_meta m WHERE m.name = 'lanes'
ON CONFLICT DO NOTHING;

-- lanes_pause: until when no lane may be acquired, while their number changes.
INSERT INTO sluice_outbox_meta (name, value) VALUES ('lanes_pause', '-infinity')
ON CONFLICT DO NOTHING;
UPDATE sluice_outbox_meta SET value = '2' WHERE name = 'schema_version';
