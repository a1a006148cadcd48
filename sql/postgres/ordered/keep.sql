-- Delivered, and to be kept: copy the messages; ordered/sent then deletes them.
-- in:  id int8[], epoch int8[], count int8[]
-- out: none
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, coalesce(o.attempts, 0) + u.count, u.epoch
  FROM sluice_outbox o
  JOIN unnest($1, $2, $3) AS u (id, epoch, count) ON o.id = u.id
 WHERE o.id = ANY ($1);
