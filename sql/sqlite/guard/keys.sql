-- The key of a message of which only id and epoch are known.
-- in:  id int8[]
-- out: id int8, entity_key text
SELECT o.id, o.entity_key FROM sluice_outbox o WHERE o.id = ?1;
