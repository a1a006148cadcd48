-- Layout `rotated`: the table is a ring of four segments, by ranges of 524,288 ids. What was delivered stays in its
-- segment until nothing in that is left to do; then the segment is emptied as a whole. So nothing is written for a
-- message that has gone, and there is nothing to vacuum. Run before 001, which then finds the table.
-- Ids are given by the table and by nobody else: a message with an id below a position would never be looked for.
-- An id has one segment, so that a unique index on each is one on all.
CREATE TABLE IF NOT EXISTS sluice_outbox_meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE sluice_outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME sluice_outbox_ids),
    topic           text COLLATE "C" NOT NULL
                    CONSTRAINT sluice_outbox_ck_topic CHECK (topic <> ''),
    entity_key      text COLLATE "C"
                    CONSTRAINT sluice_outbox_ck_key CHECK (octet_length(entity_key) <= 512),
    event_type      text NOT NULL DEFAULT '',
    payload         bytea NOT NULL,
    content_type    text NOT NULL DEFAULT 'application/json',
    headers         jsonb
                    CONSTRAINT sluice_outbox_ck_headers CHECK (
                        jsonb_typeof(headers) = 'object'
                        AND NOT jsonb_path_exists(headers, '$.* ? (@.type() != "string")')),
    idempotency_key text COLLATE "C"
                    CONSTRAINT sluice_outbox_ck_idempotency CHECK (octet_length(idempotency_key) <= 512),
    created_at      timestamptz NOT NULL DEFAULT now(),
    available_at    timestamptz NOT NULL DEFAULT now(),
    lane            integer GENERATED ALWAYS AS (
                        ((coalesce(hashtextextended(entity_key, 0), id) & 9223372036854775807) % sluice_lanes)::integer
                    ) STORED,
    attempts        integer NOT NULL DEFAULT 0,
    last_error      text,
    leased_until    timestamptz,
    epoch           bigint NOT NULL DEFAULT 0,
    worker          text
) PARTITION BY LIST (((id / 524288) % 4));

-- Vacuum seldom: rows that are dead go with their segment.
CREATE TABLE sluice_outbox_s0 PARTITION OF sluice_outbox FOR VALUES IN (0) WITH (
    autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_threshold = 100000, autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE sluice_outbox_s1 PARTITION OF sluice_outbox FOR VALUES IN (1) WITH (
    autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_threshold = 100000, autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE sluice_outbox_s2 PARTITION OF sluice_outbox FOR VALUES IN (2) WITH (
    autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_threshold = 100000, autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE sluice_outbox_s3 PARTITION OF sluice_outbox FOR VALUES IN (3) WITH (
    autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_threshold = 100000, autovacuum_vacuum_insert_threshold = -1);

CREATE UNIQUE INDEX sluice_outbox_ix_s0 ON sluice_outbox_s0 (id);
CREATE UNIQUE INDEX sluice_outbox_ix_s1 ON sluice_outbox_s1 (id);
CREATE UNIQUE INDEX sluice_outbox_ix_s2 ON sluice_outbox_s2 (id);
CREATE UNIQUE INDEX sluice_outbox_ix_s3 ON sluice_outbox_s3 (id);

-- 001 would make it unique, which it cannot be across segments.
CREATE INDEX sluice_outbox_ix_idempotency ON sluice_outbox (idempotency_key) WHERE idempotency_key IS NOT NULL;

INSERT INTO sluice_outbox_meta (name, value) VALUES ('layout', 'rotated');
