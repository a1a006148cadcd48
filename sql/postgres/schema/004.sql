-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is infinity, and so is that of its key, if it has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id) WHERE available_at = 'infinity';

-- At most once: what was consumed and is not known to be sent. It comes here before the first byte leaves, and goes
-- when the sink has confirmed it; nobody but an operator sends it again. May hold whatever an adopted table held.
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
    journal         bigint                 -- the identity of the journal that knows more; or none was kept
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
