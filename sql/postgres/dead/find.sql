-- The next dead letters that match, by dead_id, from the one behind `above` on; no more than `take`. Their
-- bytes tell how many of them fit into a transaction.
-- in:  topic text, prefix text, key text, older_us int8, newer_us int8, error text,
--      unknown bool, above int8, take int8
-- out: dead_id int8, id int8, bytes int8, unknown bool
SELECT d.dead_id, d.id, coalesce(octet_length(d.payload), 0)::bigint, d.unknown
  FROM sluice_outbox_dead d
 WHERE ($1::text IS NULL OR d.topic = $1)
   AND ($2::text IS NULL OR starts_with(coalesce(d.topic, ''), $2))
   AND ($3::text IS NULL OR d.entity_key = $3)
   AND ($4::bigint IS NULL OR d.died_at < now() - $4 * interval '1 microsecond')
   AND ($5::bigint IS NULL OR d.died_at > now() - $5 * interval '1 microsecond')
   AND ($6::text IS NULL OR strpos(d.last_error, $6) > 0)
   AND ($7::boolean IS NULL OR d.unknown = $7)
   AND d.dead_id > $8
 ORDER BY d.dead_id
 LIMIT $9;
