-- A key without held messages waits for nothing any more, unless it is parked.
-- in:  entity_key text[]
-- out: none
DELETE FROM sluice_outbox_keys
 WHERE entity_key = ?1 AND due_at < '9999-12-31 23:59:59.999'
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox o
                    WHERE o.held = 1 AND o.delayed = 0 AND o.entity_key = sluice_outbox_keys.entity_key);
