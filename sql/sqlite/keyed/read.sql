-- The messages that were found when their keys were, if they are still there, in one statement and in the order of their
-- ids. `wait` says why one may not go: 1 its key is blocked, 2 its time has not come, 3 the same, and it was never tried.
-- epoch/next has run before.
-- in:  id json
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob, lane int8, wait int8
SELECT f.id, (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch'),
       ifnull(f.attempts, 0) + 1,
       CAST(round((julianday(f.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       f.topic, f.entity_key, f.event_type, f.content_type, f.headers,
       CASE WHEN f.sluice_wait = 0 THEN f.payload END, 0, f.sluice_wait
  FROM (SELECT o.id, o.attempts, o.created_at, o.topic, o.entity_key, o.event_type, o.content_type,
               o.headers, o.payload,
               CASE WHEN k.entity_key IS NOT NULL THEN 1
                    WHEN o.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN 2
                    WHEN julianday(o.available_at) > julianday('now')
                    THEN CASE WHEN o.attempts > 0 OR o.last_error IS NOT NULL THEN 2 ELSE 3 END
                    ELSE 0 END AS sluice_wait
          FROM sluice_outbox o
          LEFT JOIN sluice_outbox_keys k ON k.entity_key = o.entity_key
         WHERE o.id IN (SELECT u.value FROM json_each(?1) u) AND o.held = 0) f
 ORDER BY f.id;
