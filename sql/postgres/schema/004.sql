-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is infinity, and so is that of its key, if it has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id) WHERE available_at = 'infinity';

-- A dead letter that may have been delivered: with the promise at-most-once only an operator sends it again.
ALTER TABLE sluice_outbox_dead ADD COLUMN IF NOT EXISTS unknown boolean NOT NULL DEFAULT false;

-- At most once: what was consumed and has no verdict yet. It comes here before the first byte leaves, goes when the
-- sink has confirmed it, and becomes a dead letter, one that may have been delivered, when the sink has not, or when
-- the node that had it is gone. May hold whatever an adopted table held.
CREATE TABLE IF NOT EXISTS sluice_outbox_consumed (
    id              bigint PRIMARY KEY,
    topic           text COLLATE "C",
    entity_key      text COLLATE "C",
    event_type      text,
    payload         bytea,
    content_type    text,
    headers         jsonb,
    idempotency_key text COLLATE "C",
    created_at      timestamptz,
    consumed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts        integer NOT NULL,
    last_error      text,
    epoch           bigint NOT NULL,
    worker          text NOT NULL,
    journal         bigint,                -- the journal that knows more; or none was kept
    opened_by       bigint,                -- the session that had it open
    synced_to       bigint                 -- how far it was synced then
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- Idempotency keys that outlive their messages. A key is registered when its message is inserted, in the producer's
-- transaction, and stays when the row is deleted: so a settle has nothing to write. gone_at is when the message was
-- found to be gone; `idempotency_keep` later the registration is deleted. seq is for those who walk through them.
CREATE TABLE IF NOT EXISTS sluice_outbox_idempotency (
    idempotency_key text COLLATE "C" PRIMARY KEY,
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    since           timestamptz NOT NULL DEFAULT clock_timestamp(),
    gone_at         timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_live ON sluice_outbox_idempotency (seq) WHERE gone_at IS NULL;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_gone ON sluice_outbox_idempotency (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_cons ON sluice_outbox_consumed (idempotency_key)
 WHERE idempotency_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_idem_dead ON sluice_outbox_dead (idempotency_key)
 WHERE idempotency_key IS NOT NULL;

-- Two producers with the same key: the second waits for the first to commit, and its message is left out, as by
-- ON CONFLICT DO NOTHING. Producers may insert into the outbox and no more, so this runs as the owner of the tables:
-- the table has its schema, found here, before it, and nothing is looked up along a path that a producer could set.
DO $do$
DECLARE
    home text;
BEGIN
    SELECT format('%I.%I', n.nspname, c.relname) INTO STRICT home
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.oid = 'sluice_outbox_idempotency'::regclass;
    EXECUTE format($function$
CREATE OR REPLACE FUNCTION sluice_outbox_register() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO %s (idempotency_key) VALUES (NEW.idempotency_key) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END
$$
$function$, home);
END
$do$;
-- Else whoever may make triggers could register keys by a table of their own.
REVOKE ALL ON FUNCTION sluice_outbox_register() FROM PUBLIC;

DROP TRIGGER IF EXISTS sluice_outbox_tr_idempotency ON sluice_outbox;
CREATE TRIGGER sluice_outbox_tr_idempotency BEFORE INSERT ON sluice_outbox
   FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL) EXECUTE FUNCTION sluice_outbox_register();

-- After the trigger: nobody can insert any more, until this is committed.
INSERT INTO sluice_outbox_idempotency (idempotency_key)
SELECT o.idempotency_key FROM sluice_outbox o WHERE o.idempotency_key IS NOT NULL
 UNION
SELECT d.idempotency_key FROM sluice_outbox_dead d WHERE d.idempotency_key IS NOT NULL
ON CONFLICT DO NOTHING;

-- Parked by hand, at any time, also while a message of the key is in flight. `fence`: who owns the key's lane by a later
-- epoch has never seen the key otherwise; none: an operator has not parked it. `doubt`: its head at that moment, which
-- had been tried so many times.
ALTER TABLE sluice_outbox_keys ADD COLUMN IF NOT EXISTS fence bigint;
ALTER TABLE sluice_outbox_keys ADD COLUMN IF NOT EXISTS doubt bigint;
ALTER TABLE sluice_outbox_keys ADD COLUMN IF NOT EXISTS tried bigint;

-- Delivered messages, kept for `retention`; without it, nothing is ever written here. The same id is kept once, unless
-- ids are given again: a settle must not fail for that, so it is not the key alone. May hold whatever an adopted table
-- held, NULLs included.
CREATE TABLE IF NOT EXISTS sluice_outbox_sent (
    sent_id         bigint GENERATED ALWAYS AS IDENTITY,
    id              bigint NOT NULL,
    topic           text COLLATE "C",
    entity_key      text COLLATE "C",
    event_type      text,
    payload         bytea,
    content_type    text,
    headers         jsonb,
    idempotency_key text COLLATE "C",
    created_at      timestamptz,
    sent_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts        integer NOT NULL,
    epoch           bigint NOT NULL,
    PRIMARY KEY (id, sent_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_sent ON sluice_outbox_sent (sent_at);
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_sent_key ON sluice_outbox_sent (entity_key, id);

-- Delayed (`unordered_delay`): a message that is held until its time comes, while its key goes on without it. No key
-- waits for such a message, and it has no row in _keys: it is found by its time. The held ones of a key are found
-- without them, however many there are. Where the table is, its indexes are: they are named without a schema.
ALTER TABLE sluice_outbox ADD COLUMN IF NOT EXISTS delayed boolean NOT NULL DEFAULT false;
DO $do$
DECLARE
    old regclass;
BEGIN
    SELECT i.indexrelid INTO old
      FROM pg_catalog.pg_index i
      JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
     WHERE i.indrelid = 'sluice_outbox'::regclass AND c.relname = trim('sluice_outbox_ix_held', '"');
    IF FOUND THEN
        EXECUTE format('DROP INDEX %s', old);
    END IF;
END
$do$;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_held ON sluice_outbox (entity_key, id) WHERE held AND NOT delayed;
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_delayed ON sluice_outbox (available_at, id) WHERE delayed;

-- With a fence: where a node sends under names of its own. Its rows outlive it, until others have made sure that nothing
-- more of it gets in there; until then nobody takes over a lane.
CREATE TABLE IF NOT EXISTS sluice_outbox_fences (
    session    bigint NOT NULL,
    way        integer NOT NULL,         -- the route, as that node counts them
    node       text NOT NULL,
    workers    integer NOT NULL,
    place      text NOT NULL,            -- the brokers, as its URL has them
    busy_until timestamptz,              -- until then someone is at it
    PRIMARY KEY (session, way)
);

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
