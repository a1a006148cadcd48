-- Keys that are blocked or parked, and messages that are parked alone, the longest waiting first. `behind`: messages
-- that were set aside behind the first one, counted up to count_max. The OFFSET keeps the
-- planner from reading the whole outbox for a join.
-- `message`: it, or the key that it belongs to. `state` is 1 for blocked and 2 for parked ones, 0 for both. Of the
-- other filters, NULL is anything. The topic is that of the key's first message.
-- in:  key text, message int8, topic text, prefix text, state int8, older_us int8,
--      take int8, count_max int8
-- out: entity_key text, alone bool, id int8, topic text, parked bool, by_hand bool, behind int8,
--      attempts int8, since text, age_us int8, due_us int8, reason text
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
     ORDER BY 3, 2, 1
     LIMIT $7
)
SELECT w.sluice_key, w.sluice_alone IS NOT NULL, o.id, o.topic, w.sluice_due = 'infinity', w.sluice_hand,
       CASE WHEN w.sluice_alone IS NULL
            THEN (SELECT greatest(count(*) - 1, 0)
                    FROM (SELECT FROM sluice_outbox m WHERE m.held AND NOT m.delayed AND m.entity_key = w.sluice_key LIMIT $8) b)
            ELSE 0 END,
       coalesce(o.attempts, 0)::bigint,
       to_char(w.sluice_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       (extract(EPOCH FROM now() - w.sluice_since) * 1000000)::bigint,
       CASE WHEN w.sluice_due < 'infinity' THEN (extract(EPOCH FROM w.sluice_due - now()) * 1000000)::bigint END,
       CASE WHEN w.sluice_hand THEN coalesce(w.sluice_reason, o.last_error)
            ELSE coalesce(o.last_error, w.sluice_reason) END
  FROM waiting w
  LEFT JOIN LATERAL (
       SELECT s.id, s.topic, s.attempts, s.last_error
         FROM sluice_outbox s
        WHERE s.id = coalesce(w.sluice_alone, (SELECT m.id FROM sluice_outbox m
                                                WHERE m.held AND NOT m.delayed AND m.entity_key = w.sluice_key ORDER BY m.id LIMIT 1))
       OFFSET 0) o ON true
 ORDER BY w.sluice_since, w.sluice_alone, w.sluice_key;
