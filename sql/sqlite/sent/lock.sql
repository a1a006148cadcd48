-- First of a transaction that resends kept messages: is it still there? The transaction is the only writer.
-- in:  sent_id int8[], id int8[]
-- out: sent_id int8
SELECT s.sent_id
  FROM sluice_outbox_sent s
 WHERE s.sent_id = ?1 AND s.id = ?2;
