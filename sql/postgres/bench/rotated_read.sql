-- The next messages behind the floor in the order of the table, of the lanes of one connection. The owner of a lane needs
-- no row locks.
-- in:  floor int8, batch int8, connections int8, connection int8
-- out: id int8, lane int8, attempts int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea
SELECT o.id, o.lane::bigint, o.attempts::bigint, o.created_at, o.topic, o.entity_key, o.event_type, o.content_type,
       o.headers, o.payload
  FROM sluice_outbox o
 WHERE o.id > $1 AND NOT o.held AND o.lane % $3 = $4
 ORDER BY o.id
 LIMIT $2;
