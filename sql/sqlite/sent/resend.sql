-- Into the outbox again, as new messages that were never tried: with new ids in the order of the old ones, due now. What
-- the producer wrote is kept, but for the idempotency key: it is sent again on purpose.
-- in:  sent_id int8[], id int8[]
-- out: none
INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, content_type, headers, created_at, available_at,
                           attempts)
SELECT s.topic, s.entity_key, s.event_type, s.payload, s.content_type, s.headers,
       ifnull(s.created_at, strftime('%Y-%m-%d %H:%M:%f', 'now')), strftime('%Y-%m-%d %H:%M:%f', 'now'), 0
  FROM sluice_outbox_sent s
 WHERE s.sent_id = ?1 AND s.id = ?2;
