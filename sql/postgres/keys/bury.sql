-- A message that an operator gives up: copied to the dead letters, with why it failed. ordered/sent then deletes it.
-- in:  id int8, reason text
-- out: none
INSERT INTO sluice_outbox_dead (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, last_error, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, coalesce(o.attempts, 0), coalesce(o.last_error, $2), o.epoch
  FROM sluice_outbox o
 WHERE o.id = $1;
