-- Known to be sent, and to be kept: copy the message; consumed/sent then takes it out of the list.
-- in:  id int8[]
-- out: none
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT c.id, c.topic, c.entity_key, c.event_type, c.payload, c.content_type, c.headers,
       c.idempotency_key, c.created_at, c.attempts + 1, c.epoch
  FROM sluice_outbox_consumed c
 WHERE c.id = ?1;
