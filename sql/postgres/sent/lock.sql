-- First of a transaction that resends kept messages: those of them that are still there, locked against the purge. Always
-- in the order of their ids, and waiting: so two operators cannot wait for each other.
-- in:  sent_id int8[], id int8[]
-- out: sent_id int8
SELECT s.sent_id
  FROM sluice_outbox_sent s
 WHERE s.id = ANY ($2)
   AND CASE WHEN s.sent_id = ANY ($1) THEN true END
 ORDER BY s.id, s.sent_id
   FOR UPDATE;
