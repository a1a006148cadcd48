-- Held messages whose time has come, of our lanes: those of blocked keys that are due, in the order of
-- each key and at most per_key of them, and those without a key. A key that has none left comes with
-- no id. `wait` 2: the head of what is left is scheduled for later; 3: and was never tried. The time is the
-- statement's: that of the clock changes while it runs, and no index could be asked for it.
-- A key is compared twice instead of once: in the order of the key and the id only the index of what is held can be
-- read, while a planner that takes the table to be empty might read all of it in the order of the ids. The collation:
-- else "C" would decide, and the index of an adopted table that has another one could not be used.
-- in:  lane int8[], keys int8, per_key int8
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea, lane int8, wait int8
SELECT o.id, 0::bigint, coalesce(o.attempts, 0)::bigint + 1, o.created_at, o.topic, d.entity_key,
       o.event_type, o.content_type, o.headers, o.payload, d.lane::bigint,
       CASE WHEN o.leased_until > statement_timestamp() THEN 2
            WHEN o.available_at > statement_timestamp()
            THEN CASE WHEN o.attempts > 0 OR o.last_error IS NOT NULL THEN 2 ELSE 3 END
            ELSE 0 END::bigint
  FROM (SELECT k.entity_key COLLATE "default" AS entity_key, k.lane
          FROM sluice_outbox_keys k
         WHERE k.due_at <= statement_timestamp() AND k.lane = ANY ($1)
         ORDER BY k.due_at
         LIMIT $2) d
  LEFT JOIN LATERAL (
       SELECT m.*
         FROM sluice_outbox m
        WHERE m.held AND NOT m.delayed AND m.entity_key >= d.entity_key AND m.entity_key <= d.entity_key
        ORDER BY m.entity_key, m.id
        LIMIT $3) o ON true
UNION ALL
(SELECT o.id, 0::bigint, coalesce(o.attempts, 0)::bigint + 1, o.created_at, o.topic, o.entity_key,
        o.event_type, o.content_type, o.headers, o.payload, o.lane::bigint, 0::bigint
   FROM sluice_outbox o
  WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp()
   AND (o.leased_until IS NULL OR o.leased_until <= statement_timestamp()) AND o.lane = ANY ($1)
  ORDER BY o.available_at
  LIMIT $2)
 ORDER BY 1;
