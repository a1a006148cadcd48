-- As keyed/read, where the messages are nearly all that stand between the first id and the last: they are not looked up one by one.
-- `which` has a byte for each id from the first one on: 1 for those that are asked for.
-- in:  which bytea, first int8
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea, lane int8, wait int8
SELECT o.id, currval('sluice_outbox_epoch'), coalesce(o.attempts, 0)::bigint + 1, o.created_at, o.topic,
       o.entity_key, o.event_type, o.content_type, o.headers,
       CASE WHEN o.sluice_wait = 0 THEN o.payload END, o.lane::bigint, o.sluice_wait
  FROM (SELECT m.id, m.attempts, m.created_at, m.topic, m.entity_key, m.event_type, m.content_type,
               m.headers, m.payload, m.lane,
               CASE WHEN CASE WHEN (SELECT count(*) FROM (SELECT FROM sluice_outbox_keys LIMIT 257) f) < 257
                              THEN m.entity_key IN (SELECT k.entity_key FROM sluice_outbox_keys k LIMIT 256)
                              ELSE (SELECT true FROM sluice_outbox_keys k WHERE k.entity_key = m.entity_key) END
                    THEN 1::bigint
                    WHEN m.leased_until > statement_timestamp() THEN 2
                    WHEN m.available_at > statement_timestamp()
                    THEN CASE WHEN m.attempts > 0 OR m.last_error IS NOT NULL THEN 2 ELSE 3 END
                    ELSE 0 END AS sluice_wait
          FROM sluice_outbox m
         WHERE m.id >= $2 AND m.id <= $2 + (octet_length($1) - 1)
           AND CASE WHEN m.held THEN false
                    WHEN m.id - $2 BETWEEN 0 AND octet_length($1) - 1 THEN get_byte($1, (m.id - $2)::int) = 1 END
         ORDER BY m.id
        OFFSET 0) o;
