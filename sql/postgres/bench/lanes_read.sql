-- The next messages of each lane behind its floor, for all lanes in one statement. The owner of a
-- lane needs no row locks.
-- in:  lane int8[], floor int8[], most int8[]
-- out: id int8, lane int8, attempts int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea
SELECT m.id, m.lane::bigint, m.attempts::bigint, m.created_at, m.topic, m.entity_key, m.event_type, m.content_type,
       m.headers, m.payload
  FROM unnest($1, $2, $3) AS l (lane, floor, most)
 CROSS JOIN LATERAL (
    SELECT o.*
      FROM sluice_outbox o
     WHERE o.lane = l.lane::integer AND o.id > l.floor AND NOT o.held
     ORDER BY o.id
     LIMIT l.most) m;
