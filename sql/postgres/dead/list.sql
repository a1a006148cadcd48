-- The dead letters that match, the newest first, without their payloads; ages on the database's clock.
-- in:  topic text, prefix text, key text, older_us int8, newer_us int8, error text,
--      unknown bool, take int8
-- out: dead_id int8, id int8, topic text, entity_key text, event_type text, attempts int8,
--      died_at text, age_us int8, last_error text, bytes int8, unknown bool
SELECT d.dead_id, d.id, d.topic, d.entity_key, d.event_type, d.attempts::bigint,
       to_char(d.died_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       (extract(EPOCH FROM now() - d.died_at) * 1000000)::bigint,
       d.last_error, coalesce(octet_length(d.payload), 0)::bigint, d.unknown
  FROM sluice_outbox_dead d
 WHERE ($1::text IS NULL OR d.topic = $1)
   AND ($2::text IS NULL OR starts_with(coalesce(d.topic, ''), $2))
   AND ($3::text IS NULL OR d.entity_key = $3)
   AND ($4::bigint IS NULL OR d.died_at < now() - $4 * interval '1 microsecond')
   AND ($5::bigint IS NULL OR d.died_at > now() - $5 * interval '1 microsecond')
   AND ($6::text IS NULL OR strpos(d.last_error, $6) > 0)
   AND ($7::boolean IS NULL OR d.unknown = $7)
 ORDER BY d.dead_id DESC
 LIMIT $8;
