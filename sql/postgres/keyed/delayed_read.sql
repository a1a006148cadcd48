-- The delayed messages that were found when their keys were locked, if they are still there and due. `wait` 1: its key
-- is blocked. epoch/next has run before.
-- in:  id int8[]
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea, lane int8, wait int8
SELECT d.id, currval('sluice_outbox_epoch'), coalesce(d.attempts, 0)::bigint + 1, d.created_at, d.topic,
       d.entity_key, d.event_type, d.content_type, d.headers,
       CASE WHEN d.sluice_wait = 0 THEN d.payload END, d.lane::bigint, d.sluice_wait
  FROM (SELECT o.*,
               CASE WHEN (SELECT true FROM sluice_outbox_keys k WHERE k.entity_key = o.entity_key) THEN 1
                    ELSE 0 END::bigint AS sluice_wait
          FROM sluice_outbox o
         WHERE o.id = ANY ($1)
           AND CASE WHEN o.delayed AND o.entity_key IS NOT NULL AND o.available_at <= statement_timestamp() THEN true END
           AND (o.leased_until IS NULL OR o.leased_until <= statement_timestamp())
         ORDER BY o.id
        OFFSET 0) d;
