-- The same of these messages, by the ids that they had.
-- in:  id int8[]
-- out: sent_id int8, id int8, bytes int8, entity_key text
SELECT s.sent_id, s.id, coalesce(octet_length(s.payload), 0)::bigint, s.entity_key
  FROM sluice_outbox_sent s
 WHERE s.id = ANY ($1);
