-- The messages of the locked keys in the same stretch of ids: a statement of its own, whose snapshot
-- is younger than the locks. The CASE makes a hash table of the keys, whatever the planner guesses.
-- in:  entity_key text[], floor int8, upto int8, batch int8
-- out: id int8, attempts int8, created_at timestamptz, topic text, entity_key text, event_type text,
--      content_type text, headers jsonb, payload bytea
SELECT o.id, o.attempts::bigint, o.created_at, o.topic, o.entity_key, o.event_type, o.content_type, o.headers,
       o.payload
  FROM sluice_outbox o
 WHERE o.id > $2 AND o.id <= $3 AND NOT o.held
   AND CASE WHEN o.entity_key IN (SELECT unnest($1)) THEN true END
 ORDER BY o.id
 LIMIT $4;
