-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is the end of the calendar, and so is that of its key, if it
-- has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id)
 WHERE available_at = '9999-12-31 23:59:59.999';

-- A dead letter that may have been delivered: with the promise at-most-once only an operator sends it again.
ALTER TABLE sluice_outbox_dead ADD COLUMN unknown INTEGER NOT NULL DEFAULT 0;

-- At most once: what was consumed and has no verdict yet. It comes here before the first byte leaves, goes when the
-- sink has confirmed it, and becomes a dead letter, one that may have been delivered, when the sink has not, or when
-- the node that had it is gone. May hold whatever an adopted table held.
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
    journal         INTEGER,               -- the journal that knows more; or none was kept
    opened_by       INTEGER,               -- the session that had it open
    synced_to       INTEGER                -- how far it was synced then
);
-- Idempotency keys that outlive their messages. A key is registered when its message is inserted, in the producer's
-- transaction, and stays when the row is deleted: so a settle has nothing to write. gone_at is when the message was
-- found to be gone; `idempotency_keep` later the registration is deleted. seq is for those who walk through them.
CREATE TABLE IF NOT EXISTS sluice_outbox_idempotency (
    seq             INTEGER PRIMARY KEY,
    idempotency_key TEXT NOT NULL UNIQUE,
    since           TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    gone_at         TEXT
);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_live ON sluice_outbox_idempotency (seq) WHERE gone_at IS NULL;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_gone ON sluice_outbox_idempotency (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_cons ON sluice_outbox_consumed (idempotency_key)
 WHERE idempotency_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_dead ON sluice_outbox_dead (idempotency_key)
 WHERE idempotency_key IS NOT NULL;

INSERT OR IGNORE INTO sluice_outbox_idempotency (idempotency_key)
SELECT CAST(o.idempotency_key AS TEXT) FROM sluice_outbox o WHERE o.idempotency_key IS NOT NULL
 UNION
SELECT CAST(d.idempotency_key AS TEXT) FROM sluice_outbox_dead d WHERE d.idempotency_key IS NOT NULL;

-- A message whose key is registered is left out, as by ON CONFLICT DO NOTHING. There is one writer at a time: what the
-- first of these sees is still so when the second one registers.
CREATE TRIGGER IF NOT EXISTS sluice_outbox_tr_idempotency BEFORE INSERT ON sluice_outbox
 WHEN NEW.idempotency_key IS NOT NULL
  AND EXISTS (SELECT 1 FROM sluice_outbox_idempotency i WHERE i.idempotency_key = CAST(NEW.idempotency_key AS TEXT))
BEGIN
    SELECT RAISE(IGNORE);
END;
CREATE TRIGGER IF NOT EXISTS sluice_outbox_tr_register AFTER INSERT ON sluice_outbox
 WHEN NEW.idempotency_key IS NOT NULL
BEGIN
    INSERT INTO sluice_outbox_idempotency (idempotency_key) VALUES (CAST(NEW.idempotency_key AS TEXT));
END;

-- Parked by hand, at any time, also while a message of the key is in flight. `fence`: who owns the key's lane by a later
-- epoch has never seen the key otherwise; none: an operator has not parked it. `doubt`: its head at that moment, which
-- had been tried so many times.
ALTER TABLE sluice_outbox_keys ADD COLUMN fence INTEGER;
ALTER TABLE sluice_outbox_keys ADD COLUMN doubt INTEGER;
ALTER TABLE sluice_outbox_keys ADD COLUMN tried INTEGER;

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

-- Delayed (`unordered_delay`): a message that is held until its time comes, while its key goes on without it. No key
-- waits for such a message, and it has no row in _keys: it is found by its time. The held ones of a key are found
-- without them, however many there are.
ALTER TABLE sluice_outbox ADD COLUMN delayed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_held ON sluice_outbox (entity_key, id) WHERE held = 1 AND delayed = 0;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_delayed ON sluice_outbox (julianday(available_at), id) WHERE delayed = 1;

-- With a fence: where a node sends under names of its own. Its rows outlive it, until others have made sure that nothing
-- more of it gets in there; until then nobody takes over a lane.
CREATE TABLE IF NOT EXISTS sluice_outbox_fences (
    session    INTEGER NOT NULL,
    way        INTEGER NOT NULL,         -- the route, as that node counts them
    node       TEXT NOT NULL,
    workers    INTEGER NOT NULL,
    place      TEXT NOT NULL,            -- the brokers, as its URL has them
    busy_until TEXT,                     -- until then someone is at it
    PRIMARY KEY (session, way)
);

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
