-- All there is of one dead letter.
-- in:  dead_id int8
-- out: dead_id int8, id int8, topic text, entity_key text, event_type text, payload bytea,
--      content_type text, headers jsonb, idempotency_key text, created_at text, died_at text,
--      age_us int8, attempts int8, last_error text, epoch int8, unknown bool
SELECT d.dead_id, d.id, d.topic, d.entity_key, d.event_type, d.payload, d.content_type, d.headers, d.idempotency_key,
       to_char(d.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       to_char(d.died_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       (extract(EPOCH FROM now() - d.died_at) * 1000000)::bigint, d.attempts::bigint, d.last_error, d.epoch, d.unknown
  FROM sluice_outbox_dead d
 WHERE d.dead_id = $1;
