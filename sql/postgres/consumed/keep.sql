-- Known to be sent, and to be kept: out of the list, and among the delivered messages. In one statement: a row that
-- someone else takes out of the list at the same time is kept by nobody. consumed/sent, which follows, finds none of them.
-- in:  id int8[]
-- out: none
WITH gone AS (
    DELETE FROM sluice_outbox_consumed c WHERE c.id = ANY ($1) RETURNING c.*
)
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT c.id, c.topic, c.entity_key, c.event_type, c.payload, c.content_type, c.headers,
       c.idempotency_key, c.created_at, c.attempts + 1, c.epoch
  FROM gone c;
