-- How many keys are blocked and parked, and how many messages are parked alone: without a key, or with one that is not
-- parked.
-- `message`: it, or the key that it belongs to. `state` is 1 for blocked and 2 for parked ones, 0 for both. Of the
-- other filters, NULL is anything. The topic is that of the key's first message.
-- in:  key text, message int8, topic text, prefix text, state int8, older_us int8
-- out: blocked int8, parked int8, alone int8
WITH waiting AS (
    SELECT k.entity_key AS sluice_key, NULL::bigint AS sluice_alone, k.since AS sluice_since, k.due_at AS sluice_due,
           k.reason AS sluice_reason, k.fence IS NOT NULL AS sluice_hand
      FROM sluice_outbox_keys k
     WHERE ($1::text IS NULL OR k.entity_key = $1)
       AND ($2::bigint IS NULL OR k.entity_key = (SELECT m.entity_key FROM sluice_outbox m WHERE m.id = $2))
       AND CASE WHEN $3::text IS NULL AND $4::text IS NULL THEN true
                ELSE (SELECT ($3 IS NULL OR m.topic = $3) AND ($4 IS NULL OR starts_with(coalesce(m.topic, ''), $4))
                        FROM sluice_outbox m
                       WHERE m.held AND NOT m.delayed AND m.entity_key = k.entity_key ORDER BY m.id LIMIT 1) END
       AND ($5 = 0 OR (k.due_at = 'infinity') = ($5 = 2))
       AND ($6::bigint IS NULL OR k.since < now() - $6 * interval '1 microsecond')
    UNION ALL
    SELECT o.entity_key, o.id, o.created_at, o.available_at, NULL, false
      FROM sluice_outbox o
     WHERE o.available_at = 'infinity' AND $5 <> 1
       AND NOT EXISTS (SELECT FROM sluice_outbox_keys k WHERE k.entity_key = o.entity_key AND k.due_at = 'infinity')
       AND ($1::text IS NULL OR o.entity_key = $1)
       AND ($2::bigint IS NULL OR o.id = $2)
       AND ($3::text IS NULL OR o.topic = $3)
       AND ($4::text IS NULL OR starts_with(coalesce(o.topic, ''), $4))
       AND ($6::bigint IS NULL OR o.created_at < now() - $6 * interval '1 microsecond')
)
SELECT count(*) FILTER (WHERE w.sluice_alone IS NULL AND w.sluice_due < 'infinity'),
       count(*) FILTER (WHERE w.sluice_alone IS NULL AND w.sluice_due = 'infinity'),
       count(w.sluice_alone)
  FROM waiting w;
