-- Held messages of a key that is ours and due, in order and at most per_key of them; run once for
-- each key. A key that has none left comes with no id. `wait` 2: the head of what is left is scheduled
-- for later; 3: and was never tried. epoch/next has run before.
-- in:  claim text[], per_key int8
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob, lane int8, wait int8
SELECT o.id, (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch'),
       ifnull(o.attempts, 0) + 1,
       CAST(round((julianday(o.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       o.topic, k.entity_key, o.event_type, o.content_type, o.headers, o.payload, k.lane,
       CASE WHEN o.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN 2
            WHEN julianday(o.available_at) > julianday('now')
            THEN CASE WHEN o.attempts > 0 OR o.last_error IS NOT NULL THEN 2 ELSE 3 END
            ELSE 0 END
  FROM sluice_outbox_keys k
  LEFT JOIN sluice_outbox o ON o.id IN (
       SELECT m.id FROM sluice_outbox m WHERE m.held = 1 AND m.delayed = 0 AND m.entity_key = k.entity_key ORDER BY m.id LIMIT ?2)
 WHERE k.entity_key = substr(?1, 2) AND substr(?1, 1, 1) = 'k' AND k.due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
UNION ALL
SELECT o.id, (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch'),
       ifnull(o.attempts, 0) + 1,
       CAST(round((julianday(o.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       o.topic, o.entity_key, o.event_type, o.content_type, o.headers, o.payload, o.lane, 0
  FROM sluice_outbox o
 WHERE o.id = CAST(substr(?1, 2) AS INTEGER) AND substr(?1, 1, 1) = 'i'
   AND o.held = 1 AND o.entity_key IS NULL AND julianday(o.available_at) <= julianday('now')
   AND ifnull(o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 1)
 ORDER BY 1;
