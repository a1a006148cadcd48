-- The messages that were found when their keys were locked, if they are still there. `wait` says why
-- one may not go: 1 its key is blocked, 2 its time has not come. epoch/next has run before.
-- in:  id int8[], batch_bytes int8
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea, lane int8, wait int8
SELECT f.id, currval('sluice_outbox_epoch'), coalesce(f.attempts, 0)::bigint + 1, f.created_at, f.topic,
       f.entity_key, f.event_type, f.content_type, f.headers,
       CASE WHEN f.sluice_wait = 0 THEN f.payload END, f.lane::bigint, f.sluice_wait
  FROM (SELECT w.*, sum(w.sluice_bytes) OVER (ORDER BY w.id ROWS UNBOUNDED PRECEDING) AS sluice_upto
          FROM (SELECT o.*, CASE WHEN o.sluice_wait = 0 THEN coalesce(octet_length(o.payload), 0) ELSE 0 END
                            AS sluice_bytes
                  FROM (SELECT m.id, m.attempts, m.created_at, m.topic, m.entity_key, m.event_type,
                               m.content_type, m.headers, m.payload, m.lane,
                               CASE WHEN k.entity_key IS NOT NULL THEN 1::bigint
                                    WHEN m.available_at > clock_timestamp() OR m.leased_until > clock_timestamp() THEN 2
                                   ELSE 0 END AS sluice_wait
                          FROM sluice_outbox m
                          LEFT JOIN sluice_outbox_keys k ON k.entity_key = m.entity_key
                         WHERE m.id = ANY ($1) AND NOT m.held) o) w) f
 WHERE f.sluice_upto - f.sluice_bytes < $2
 ORDER BY f.id;
