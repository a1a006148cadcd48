-- That the key is parked has been committed: who owns its lane by a later epoch has never seen it otherwise. epoch/next
-- has run before.
-- in:  key text
-- out: none
UPDATE sluice_outbox_keys
   SET fence = (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch')
 WHERE entity_key = ?1 AND fence = 9223372036854775807;
