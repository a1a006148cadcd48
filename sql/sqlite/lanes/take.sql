-- The oldest messages of a lane, from where its living begin (floor); run once for each lane. The
-- lane is ours: nothing is locked or written. `wait` says why a message may not go: 1 its key is
-- blocked, 2 its time has not come, 3 the same, and it was never tried; its payload then stays where
-- it is. The caller counts the whole batch and its bytes.
-- in:  lane int8[], floor int8[], quota int8[], batch int8, batch_bytes int8
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob, lane int8, wait int8
SELECT f.id, 0, ifnull(f.attempts, 0) + 1,
       CAST(round((julianday(f.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       f.topic, f.entity_key, f.event_type, f.content_type, f.headers,
       CASE WHEN f.sluice_wait = 0 THEN f.payload END, ?1, f.sluice_wait
  FROM (SELECT o.id, o.attempts, o.created_at, o.topic, o.entity_key, o.event_type, o.content_type,
               o.headers, o.payload,
               CASE WHEN k.entity_key IS NOT NULL THEN 1
                    WHEN o.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN 2
                    WHEN julianday(o.available_at) > julianday('now')
                    THEN CASE WHEN o.attempts > 0 OR o.last_error IS NOT NULL THEN 2 ELSE 3 END
                    ELSE 0 END AS sluice_wait
          FROM sluice_outbox o INDEXED BY sluice_outbox_ix_lane
          LEFT JOIN sluice_outbox_keys k ON k.entity_key = o.entity_key
         WHERE o.lane = ?1 AND o.id >= ?2 AND o.held = 0
         ORDER BY o.id
         LIMIT min(?3, ?4)) f
 WHERE ?5 > 0
 ORDER BY f.id;
