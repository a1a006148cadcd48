-- Delayed messages of a lane whose time has come, the longest due first; run once for each lane. `wait` 1: its key is
-- blocked.
-- in:  lane int8[], take int8
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob, lane int8, wait int8
SELECT d.id, 0, ifnull(d.attempts, 0) + 1,
       CAST(round((julianday(d.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       d.topic, d.entity_key, d.event_type, d.content_type, d.headers,
       CASE WHEN d.sluice_wait = 0 THEN d.payload END, ?1, d.sluice_wait
  FROM (SELECT o.id, o.attempts, o.created_at, o.topic, o.entity_key, o.event_type, o.content_type, o.headers, o.payload,
               EXISTS (SELECT 1 FROM sluice_outbox_keys k WHERE k.entity_key = o.entity_key) AS sluice_wait
          FROM sluice_outbox o INDEXED BY sluice_outbox_ix_delayed
         WHERE o.delayed = 1 AND o.entity_key IS NOT NULL AND julianday(o.available_at) <= julianday('now')
           AND ifnull(o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 1) AND o.lane = ?1
         ORDER BY julianday(o.available_at), o.id
         LIMIT ?2) d
 ORDER BY d.id;
