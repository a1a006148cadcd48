-- The same of this message, by the id that it had.
-- in:  id int8[]
-- out: sent_id int8, id int8, bytes int8, entity_key text
SELECT s.sent_id, s.id, ifnull(length(s.payload), 0), s.entity_key
  FROM sluice_outbox_sent s
 WHERE s.id = ?1;
