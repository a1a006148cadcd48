-- Delivered, and to be kept: copy the message. The delete which follows in the same transaction (settle/sent) removes
-- exactly these. `count` is 1 where the attempt was not counted before.
-- in:  id int8[], epoch int8[], count int8[]
-- out: none
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, ifnull(o.attempts, 0) + ?3, o.epoch
  FROM sluice_outbox o
 WHERE o.id = ?1 AND o.epoch = ?2;
