-- What was consumed by a node that is gone, or by an earlier life of one that is there, and that no journal knows more of;
-- and what this worker has consumed before it began anew, journal or not: nobody knows whether it was sent. A node that was only forgotten, and sends on,
-- finds its rows gone; what it sent is then listed all the same.
-- in:  worker text
-- out: none
WITH gone AS (
    DELETE FROM sluice_outbox_consumed c
     WHERE c.worker = $1::text
        OR (c.journal IS NULL
            AND NOT EXISTS (SELECT FROM sluice_outbox_nodes n
                             WHERE n.node || '/' = rtrim(c.worker, '0123456789') AND n.started_at <= c.consumed_at
                               AND n.lives_until > clock_timestamp()))
    RETURNING c.*
)
INSERT INTO sluice_outbox_dead (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, last_error, epoch, unknown)
SELECT c.id, c.topic, c.entity_key, c.event_type, c.payload, c.content_type, c.headers,
       c.idempotency_key, c.created_at, c.attempts + 1, 'consumed by ' || c.worker || ', which ended before the answer',
       c.epoch, true
  FROM gone c;
