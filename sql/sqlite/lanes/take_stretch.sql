-- The oldest messages of some lanes in the order of their ids, from `from` on and below `upto`: one statement for all
-- lanes, and what is deleted later stands together. `floors` has `from` for each lane of the table that is ours, from
-- lane 0 on, and more for the others. `wait` is as in lanes/take, and 4: its payload is larger than
-- `most`, and stays where it is; such a batch is read lane by lane.
-- The ids come from the index, and with them the lanes: that of a row is computed from its key, which costs as much as
-- all the rest of it.
-- in:  floors json, from int8, upto int8, batch int8, most int8
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob, lane int8, wait int8
SELECT m.id, 0, ifnull(m.attempts, 0) + 1,
       CAST(round((julianday(m.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       m.topic, m.entity_key, m.event_type, m.content_type, m.headers,
       CASE WHEN length(CAST(m.payload AS BLOB)) <= ?5 THEN m.payload END, f.sluice_lane,
       CASE WHEN EXISTS (SELECT 1 FROM sluice_outbox_keys k WHERE k.entity_key = m.entity_key) THEN 1
            WHEN m.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN 2
            WHEN julianday(m.available_at) > julianday('now')
            THEN CASE WHEN m.attempts > 0 OR m.last_error IS NOT NULL THEN 2 ELSE 3 END
            WHEN length(CAST(m.payload AS BLOB)) > ?5 THEN 4
            ELSE 0 END
  FROM (SELECT o.id AS sluice_id, o.lane AS sluice_lane
          FROM sluice_outbox o INDEXED BY sluice_outbox_ix_lane
         WHERE o.lane IN (SELECT u.key FROM json_each(?1) u WHERE u.value <= ?2) AND o.id >= ?2 AND o.id < ?3 AND o.held = 0
         ORDER BY o.id
         LIMIT ?4) f
 CROSS JOIN sluice_outbox m
 WHERE m.id = f.sluice_id
 ORDER BY m.id;
