-- Version 4: what becomes of a message when its delivery fails, and afterwards.

-- Parked: nobody but an operator lets it go on. Its time is infinity, and so is that of its key, if it has one.
CREATE INDEX IF NOT EXISTS sluice_outbox_ix_parked ON sluice_outbox (id) WHERE available_at = 'infinity';

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

UPDATE sluice_outbox_meta SET value = '4' WHERE name = 'schema_version';
