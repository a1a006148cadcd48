-- The next kept messages that match, by id, from the one behind (`above`, `above_sent`) on; no more than `take`. Their
-- bytes tell how many of them fit into a transaction. Of each filter, NULL is anything.
-- in:  topic text, prefix text, key text, since_us int8, until_us int8, above int8, above_sent int8, take int8
-- out: sent_id int8, id int8, bytes int8, entity_key text
SELECT s.sent_id, s.id, coalesce(octet_length(s.payload), 0)::bigint, s.entity_key
  FROM sluice_outbox_sent s
 WHERE ($1::text IS NULL OR s.topic = $1)
   AND ($2::text IS NULL OR starts_with(coalesce(s.topic, ''), $2))
   AND ($3::text IS NULL OR s.entity_key = $3)
   AND ($4::bigint IS NULL OR s.sent_at >= now() - $4 * interval '1 microsecond')
   AND ($5::bigint IS NULL OR s.sent_at <= now() - $5 * interval '1 microsecond')
   AND (s.id, s.sent_id) > ($6, $7)
 ORDER BY s.id, s.sent_id
 LIMIT $8;
