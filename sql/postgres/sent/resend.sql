-- Into the outbox again, as new messages that were never tried: with new ids in the order of the old ones, due now. What
-- the producer wrote is kept, but for the idempotency key: it is sent again on purpose.
-- in:  sent_id int8[], id int8[]
-- out: none
INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, content_type, headers, created_at, available_at,
                           attempts)
SELECT s.topic, s.entity_key, s.event_type, s.payload, s.content_type, s.headers, coalesce(s.created_at, now()), now(),
       0
  FROM sluice_outbox_sent s
 WHERE s.id = ANY ($2)
   AND CASE WHEN s.sent_id = ANY ($1) THEN true END
 ORDER BY s.id, s.sent_id;
