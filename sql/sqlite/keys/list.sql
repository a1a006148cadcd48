-- Keys that are blocked or parked, and messages that are parked alone, the longest waiting first. `behind`: messages
-- that were set aside behind the first one, counted up to count_max.
-- `message`: it, or the key that it belongs to. `state` is 1 for blocked and 2 for parked ones, 0 for both. Of the
-- other filters, NULL is anything. The topic is that of the key's first message.
-- in:  key text, message int8, topic text, prefix text, state int8, older_us int8,
--      take int8, count_max int8
-- out: entity_key text, alone bool, id int8, topic text, parked bool, by_hand bool, behind int8,
--      attempts int8, since text, age_us int8, due_us int8, reason text
WITH waiting AS (
    SELECT k.entity_key AS sluice_key, NULL AS sluice_alone, k.since AS sluice_since, k.due_at AS sluice_due,
           k.reason AS sluice_reason, k.fence IS NOT NULL AS sluice_hand
      FROM sluice_outbox_keys k
     WHERE (?1 IS NULL OR k.entity_key = ?1)
       AND (?2 IS NULL OR k.entity_key = (SELECT m.entity_key FROM sluice_outbox m WHERE m.id = ?2))
       AND CASE WHEN ?3 IS NULL AND ?4 IS NULL THEN 1
                ELSE (SELECT (?3 IS NULL OR m.topic = ?3) AND (?4 IS NULL OR substr(ifnull(m.topic, ''), 1, length(?4)) = ?4)
                        FROM sluice_outbox m
                       WHERE m.held = 1 AND m.delayed = 0 AND m.entity_key = k.entity_key ORDER BY m.id LIMIT 1) END
       AND (?5 = 0 OR (k.due_at = '9999-12-31 23:59:59.999') = (?5 = 2))
       AND (?6 IS NULL OR julianday(k.since) < julianday('now') - ?6 / 86400000000.0)
    UNION ALL
    SELECT o.entity_key, o.id, o.created_at, o.available_at, NULL, 0
      FROM sluice_outbox o INDEXED BY sluice_outbox_ix_parked
     WHERE o.available_at = '9999-12-31 23:59:59.999' AND ?5 <> 1
       AND NOT EXISTS (SELECT 1 FROM sluice_outbox_keys k
                        WHERE k.entity_key = o.entity_key AND k.due_at = '9999-12-31 23:59:59.999')
       AND (?1 IS NULL OR o.entity_key = ?1)
       AND (?2 IS NULL OR o.id = ?2)
       AND (?3 IS NULL OR o.topic = ?3)
       AND (?4 IS NULL OR substr(ifnull(o.topic, ''), 1, length(?4)) = ?4)
       AND (?6 IS NULL OR julianday(o.created_at) < julianday('now') - ?6 / 86400000000.0)
     ORDER BY 3, 2, 1
     LIMIT ?7
)
SELECT w.sluice_key, w.sluice_alone IS NOT NULL, o.id, o.topic, w.sluice_due = '9999-12-31 23:59:59.999', w.sluice_hand,
       CASE WHEN w.sluice_alone IS NULL
            THEN (SELECT max(count(*) - 1, 0)
                    FROM (SELECT 1 FROM sluice_outbox m WHERE m.held = 1 AND m.delayed = 0 AND m.entity_key = w.sluice_key LIMIT ?8) b)
            ELSE 0 END,
       ifnull(o.attempts, 0),
       strftime('%Y-%m-%dT%H:%M:%fZ', w.sluice_since),
       CAST(round((julianday('now') - julianday(w.sluice_since)) * 86400000.0) AS INTEGER) * 1000,
       CASE WHEN w.sluice_due < '9999-12-31 23:59:59.999'
            THEN CAST(round((julianday(w.sluice_due) - julianday('now')) * 86400000.0) AS INTEGER) * 1000 END,
       CASE WHEN w.sluice_hand THEN coalesce(w.sluice_reason, o.last_error)
            ELSE coalesce(o.last_error, w.sluice_reason) END
  FROM waiting w
  LEFT JOIN sluice_outbox o
    ON o.id = coalesce(w.sluice_alone, (SELECT m.id FROM sluice_outbox m
                                         WHERE m.held = 1 AND m.delayed = 0 AND m.entity_key = w.sluice_key ORDER BY m.id LIMIT 1))
 ORDER BY w.sluice_since, w.sluice_alone, w.sluice_key;
