-- A delayed message whose time has come while its key waits: among the other held ones of the key, in order. Only
-- where the key does wait: it leads to it from now on.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox
   SET delayed = 0
 WHERE id = ?1
   AND EXISTS (SELECT 1 FROM sluice_outbox_keys k WHERE k.entity_key = sluice_outbox.entity_key);
