-- Held messages of keys that are locked now and still due, in the order of each key and at most
-- per_key of them. A key that has none left comes with no id. `wait` 2: the head of what is left is
-- scheduled for later; 3: and was never tried. epoch/next has run before. A key is compared as in lanes/due.
-- in:  claim text[], per_key int8
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea, lane int8, wait int8
SELECT o.id, currval('sluice_outbox_epoch'), coalesce(o.attempts, 0)::bigint + 1, o.created_at, o.topic,
       k.entity_key, o.event_type, o.content_type, o.headers, o.payload, k.lane::bigint,
       CASE WHEN o.leased_until > statement_timestamp() THEN 2
            WHEN o.available_at > statement_timestamp()
            THEN CASE WHEN o.attempts > 0 OR o.last_error IS NOT NULL THEN 2 ELSE 3 END
            ELSE 0 END::bigint
  FROM sluice_outbox_keys k
  LEFT JOIN LATERAL (
       SELECT m.*
         FROM (SELECT k.entity_key COLLATE "default" AS entity_key) n, sluice_outbox m
        WHERE m.held AND NOT m.delayed AND m.entity_key >= n.entity_key AND m.entity_key <= n.entity_key
        ORDER BY m.entity_key, m.id
        LIMIT $2) o ON true
 WHERE k.entity_key = ANY (ARRAY(SELECT substr(u.sluice_claim, 2)
                                   FROM unnest($1) AS u (sluice_claim)
                                  WHERE left(u.sluice_claim, 1) = 'k'))
   AND CASE WHEN k.due_at <= statement_timestamp() THEN true END
UNION ALL
SELECT o.id, currval('sluice_outbox_epoch'), coalesce(o.attempts, 0)::bigint + 1, o.created_at, o.topic,
       o.entity_key, o.event_type, o.content_type, o.headers, o.payload, o.lane::bigint, 0::bigint
  FROM sluice_outbox o
 WHERE o.id = ANY (ARRAY(SELECT substr(u.sluice_claim, 2)::bigint
                           FROM unnest($1) AS u (sluice_claim)
                          WHERE left(u.sluice_claim, 1) = 'i'))
   AND CASE WHEN o.held AND o.entity_key IS NULL THEN true END
   AND o.available_at <= statement_timestamp()
   AND (o.leased_until IS NULL OR o.leased_until <= statement_timestamp())
 ORDER BY 1;
