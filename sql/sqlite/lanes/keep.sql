-- Delivered, and to be kept: copy the message, if its lane, that which it was read with, is still ours by its epoch;
-- lanes/sent then deletes it.
-- in:  id int8[], epoch int8[], count int8[], lane int8[]
-- out: none
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, ifnull(o.attempts, 0) + ?3, ?2
  FROM sluice_outbox o
 WHERE o.id = ?1 AND ?2 = (SELECT l.epoch FROM sluice_outbox_lanes l WHERE l.lane = ?4);
