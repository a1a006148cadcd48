-- Never handed over: back to where they were, in order, since their keys are still ours. consumed/sent then takes them
-- out of the list. The lock: as in consumed/bury.
-- in:  id int8[]
-- out: none
INSERT INTO sluice_outbox (id, topic, entity_key, event_type, payload, content_type, headers,
                           idempotency_key, created_at, attempts)
SELECT c.id, c.topic, c.entity_key, c.event_type, c.payload, c.content_type, c.headers,
       c.idempotency_key, c.created_at, c.attempts
  FROM sluice_outbox_consumed c
 WHERE c.id = ANY ($1)
   FOR UPDATE OF c;
