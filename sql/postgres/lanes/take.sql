-- The oldest messages of each lane, from where its living begin (floor). The lanes are ours: no row
-- is locked or written. `wait` says why a message may not go: 1 its key is blocked, 2 its time has
-- not come, 3 the same, and it was never tried; its payload then stays where it is. While few keys are
-- blocked a hash table is made of them, which the LIMIT makes certain; of many, each is asked by the
-- index, whatever the planner believes of that table. The condition on lane and id is one that only the index of the
-- lanes can be asked for: a planner that takes the table to be empty would pass by all other lanes' messages by their
-- ids. What goes beyond batch_bytes is left for the next
-- turn; the first message always fits.
-- in:  lane int8[], floor int8[], quota int8[], batch int8, batch_bytes int8
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea, lane int8, wait int8
SELECT f.id, 0::bigint, coalesce(f.attempts, 0)::bigint + 1, f.created_at, f.topic, f.entity_key,
       f.event_type, f.content_type, f.headers,
       CASE WHEN f.sluice_wait = 0 THEN f.payload END, f.lane::bigint, f.sluice_wait
  FROM (SELECT w.*, sum(w.sluice_bytes) OVER (ORDER BY w.id ROWS UNBOUNDED PRECEDING) AS sluice_upto
          FROM (SELECT o.*,
                       CASE WHEN o.sluice_wait = 0 THEN coalesce(octet_length(o.payload), 0) ELSE 0 END
                       AS sluice_bytes
                  FROM unnest($1, $2, $3) AS u (sluice_lane, sluice_floor, sluice_quota)
                 CROSS JOIN LATERAL (
                       SELECT m.id, m.attempts, m.created_at, m.topic, m.entity_key, m.event_type,
                              m.content_type, m.headers, m.payload, m.lane,
                              CASE WHEN CASE WHEN (SELECT count(*) FROM (SELECT FROM sluice_outbox_keys LIMIT 257) f) < 257
                                             THEN m.entity_key IN (SELECT k.entity_key FROM sluice_outbox_keys k LIMIT 256)
                                             ELSE (SELECT true FROM sluice_outbox_keys k WHERE k.entity_key = m.entity_key) END
                                   THEN 1::bigint
                                   WHEN m.leased_until > statement_timestamp() THEN 2
                                   WHEN m.available_at > statement_timestamp()
                                   THEN CASE WHEN m.attempts > 0 OR m.last_error IS NOT NULL THEN 2 ELSE 3 END
                                   ELSE 0 END AS sluice_wait
                         FROM sluice_outbox m
                        WHERE (m.lane, m.id) >= (u.sluice_lane, u.sluice_floor) AND m.lane <= u.sluice_lane
                          AND NOT m.held
                        ORDER BY m.lane, m.id
                        LIMIT u.sluice_quota) o
                 ORDER BY o.id
                 LIMIT $4) w) f
 WHERE f.sluice_upto - f.sluice_bytes < $5
 ORDER BY f.id;
