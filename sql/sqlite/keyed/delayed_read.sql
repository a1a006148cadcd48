-- A delayed message that was found when its key was, if it is still there and due. `wait` 1: its key is blocked.
-- epoch/next has run before.
-- in:  id int8[]
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob, lane int8, wait int8
SELECT d.id, (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch'),
       ifnull(d.attempts, 0) + 1,
       CAST(round((julianday(d.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       d.topic, d.entity_key, d.event_type, d.content_type, d.headers,
       CASE WHEN d.sluice_wait = 0 THEN d.payload END, 0, d.sluice_wait
  FROM (SELECT o.id, o.attempts, o.created_at, o.topic, o.entity_key, o.event_type, o.content_type, o.headers, o.payload,
               EXISTS (SELECT 1 FROM sluice_outbox_keys k WHERE k.entity_key = o.entity_key) AS sluice_wait
          FROM sluice_outbox o
         WHERE o.id = ?1 AND o.delayed = 1 AND o.entity_key IS NOT NULL
           AND julianday(o.available_at) <= julianday('now')
           AND ifnull(o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 1)) d;
