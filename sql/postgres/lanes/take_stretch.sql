-- The oldest messages of some lanes in the order of the table, from `from` on and below `upto`: cheaper
-- than lane by lane if most of what stands there is theirs. `floors` has one for each lane of the table, from lane 0
-- on: it is read from there on; of lanes that are not ours, it is one that no id reaches. `wait` is as in lanes/take,
-- and 4: its payload is larger than `most`, and stays where it is; such a batch is read lane by lane.
-- The conditions that an index must not be chosen for are written as CASE, so that there is one plan, whatever the
-- planner believes of the table: by the primary key.
-- in:  floors int8[], from int8, upto int8, batch int8, most int8
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea, lane int8, wait int8
SELECT m.id, 0::bigint, coalesce(m.attempts, 0)::bigint + 1, m.created_at, m.topic, m.entity_key,
       m.event_type, m.content_type, m.headers,
       CASE WHEN octet_length(m.payload) <= $5 THEN m.payload END, m.lane::bigint,
       CASE WHEN CASE WHEN (SELECT count(*) FROM (SELECT FROM sluice_outbox_keys LIMIT 257) f) < 257
                      THEN m.entity_key IN (SELECT k.entity_key FROM sluice_outbox_keys k LIMIT 256)
                      ELSE (SELECT true FROM sluice_outbox_keys k WHERE k.entity_key = m.entity_key) END
            THEN 1::bigint
            WHEN m.leased_until > statement_timestamp() THEN 2
            WHEN m.available_at > statement_timestamp()
            THEN CASE WHEN m.attempts > 0 OR m.last_error IS NOT NULL THEN 2 ELSE 3 END
            WHEN octet_length(m.payload) > $5 THEN 4
            ELSE 0 END
  FROM sluice_outbox m
 WHERE m.id >= $2 AND m.id < $3
   AND CASE WHEN NOT m.held AND m.id >= ($1)[m.lane + 1] THEN true END
 ORDER BY m.id
 LIMIT $4;
