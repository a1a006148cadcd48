-- Run, statement by statement, where the table is there already: each adds one column that it
-- lacks. `id` and `payload` must be there.
ALTER TABLE sluice_outbox ADD COLUMN topic text COLLATE "C" NOT NULL DEFAULT 'sluice';
ALTER TABLE sluice_outbox ADD COLUMN entity_key text COLLATE "C" CHECK (octet_length(entity_key) <= 512);
ALTER TABLE sluice_outbox ADD COLUMN event_type text NOT NULL DEFAULT '';
ALTER TABLE sluice_outbox ADD COLUMN content_type text NOT NULL DEFAULT 'application/json';
ALTER TABLE sluice_outbox ADD COLUMN headers jsonb CHECK (jsonb_typeof(headers) = 'object');
ALTER TABLE sluice_outbox ADD COLUMN idempotency_key text COLLATE "C";
ALTER TABLE sluice_outbox ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE sluice_outbox ADD COLUMN available_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE sluice_outbox ADD COLUMN lane integer GENERATED ALWAYS AS (((coalesce(hashtextextended(entity_key, 0), id) & 9223372036854775807) % sluice_lanes)::integer) STORED;
ALTER TABLE sluice_outbox ADD COLUMN attempts integer NOT NULL DEFAULT 0;
ALTER TABLE sluice_outbox ADD COLUMN last_error text;
ALTER TABLE sluice_outbox ADD COLUMN leased_until timestamptz;
ALTER TABLE sluice_outbox ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE sluice_outbox ADD COLUMN worker text;
