-- Back into the outbox, as new messages that were never tried: with new ids in the order of the old ones, due now.
-- What the producer wrote is kept.
-- in:  dead_id int8[]
-- out: none
INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, content_type, headers, idempotency_key, created_at,
                           available_at, attempts)
SELECT d.topic, d.entity_key, d.event_type, d.payload, d.content_type, d.headers, d.idempotency_key,
       coalesce(d.created_at, now()), now(), 0
  FROM sluice_outbox_dead d
 WHERE d.dead_id = ANY ($1)
 ORDER BY d.id, d.dead_id;
