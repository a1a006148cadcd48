-- How many keys are blocked and parked, and how many messages are parked alone: without a key, or with one that is not
-- parked.
-- `message`: it, or the key that it belongs to. `state` is 1 for blocked and 2 for parked ones, 0 for both. Of the
-- other filters, NULL is anything. The topic is that of the key's first message.
-- in:  key text, message int8, topic text, prefix text, state int8, older_us int8
-- out: blocked int8, parked int8, alone int8
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
)
SELECT count(*) FILTER (WHERE w.sluice_alone IS NULL AND w.sluice_due < '9999-12-31 23:59:59.999'),
       count(*) FILTER (WHERE w.sluice_alone IS NULL AND w.sluice_due = '9999-12-31 23:59:59.999'),
       count(w.sluice_alone)
  FROM waiting w;
