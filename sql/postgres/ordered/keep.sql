-- Delivered, and to be kept: copy the messages; ordered/sent then deletes them.
-- Each is looked up by its id, which OFFSET 0 makes certain: a planner that takes the table to be empty would compare
-- each with all others.
-- in:  id int8[], epoch int8[], count int8[]
-- out: none
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, coalesce(o.attempts, 0) + u.count, u.epoch
  FROM unnest($1, $2, $3) AS u (id, epoch, count)
 CROSS JOIN LATERAL (SELECT m.* FROM sluice_outbox m WHERE m.id = u.id OFFSET 0) o;
