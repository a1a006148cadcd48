-- Not known to be sent, or not delivered: a dead letter that only an operator sends again. consumed/sent then takes it
-- out of the list. The lock: whoever forgot this node may be listing them at the same time, and each is listed once.
-- They are looked up as in ordered/keep.
-- in:  id int8[], reason text[]
-- out: none
INSERT INTO sluice_outbox_dead (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, last_error, epoch, unknown)
SELECT c.id, c.topic, c.entity_key, c.event_type, c.payload, c.content_type, c.headers,
       c.idempotency_key, c.created_at, c.attempts + 1, u.reason, c.epoch, true
  FROM unnest($1, $2) AS u (id, reason)
 CROSS JOIN LATERAL (SELECT m.* FROM sluice_outbox_consumed m WHERE m.id = u.id OFFSET 0 FOR UPDATE) c;
