-- That the key is parked has been committed: who owns its lane by a later epoch has never seen it otherwise. epoch/next
-- has run before.
-- in:  key text
-- out: none
UPDATE sluice_outbox_keys k SET fence = currval('sluice_outbox_epoch')
 WHERE k.entity_key = $1 AND k.fence = 9223372036854775807;
