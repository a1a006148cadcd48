-- Held messages of a lane whose time has come: those of blocked keys that are due, in the order of
-- each key and at most per_key of them, and those without a key. A key that has none left comes with
-- no id. `wait` 2: the head of what is left is scheduled for later; 3: and was never tried.
-- in:  lane int8[], keys int8, per_key int8
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob, lane int8, wait int8
SELECT o.id, 0, ifnull(o.attempts, 0) + 1,
       CAST(round((julianday(o.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       o.topic, d.entity_key, o.event_type, o.content_type, o.headers, o.payload, d.lane,
       CASE WHEN o.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN 2
            WHEN julianday(o.available_at) > julianday('now')
            THEN CASE WHEN o.attempts > 0 OR o.last_error IS NOT NULL THEN 2 ELSE 3 END
            ELSE 0 END
  FROM (SELECT k.entity_key, k.lane
          FROM sluice_outbox_keys k
         WHERE k.due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now') AND k.lane = ?1
         ORDER BY k.due_at
         LIMIT ?2) d
  LEFT JOIN sluice_outbox o ON o.id IN (
       SELECT m.id FROM sluice_outbox m WHERE m.held = 1 AND m.delayed = 0 AND m.entity_key = d.entity_key ORDER BY m.id LIMIT ?3)
UNION ALL
SELECT n.*
  FROM (SELECT o.id, 0, ifnull(o.attempts, 0) + 1,
               CAST(round((julianday(o.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
               o.topic, o.entity_key, o.event_type, o.content_type, o.headers, o.payload, o.lane, 0
          FROM sluice_outbox o INDEXED BY sluice_outbox_ix_due
         WHERE o.held = 1 AND o.entity_key IS NULL AND julianday(o.available_at) <= julianday('now')
   AND ifnull(o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 1) AND o.lane = ?1
         ORDER BY o.available_at
         LIMIT ?2) n
 ORDER BY 1;
