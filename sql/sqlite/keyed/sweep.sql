-- A key that is due and waits for nothing is as any other. But not one which a turn has, over or not: it may
-- be about to hold a message of it.
-- in:  claim text[], turns int8
-- out: none
DELETE FROM sluice_outbox_keys
 WHERE entity_key = substr(?1, 2) AND substr(?1, 1, 1) = 'k' AND due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox o WHERE o.held = 1 AND o.delayed = 0 AND o.entity_key = sluice_outbox_keys.entity_key)
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c
                    WHERE c.claim = ?1 AND c.epoch >= ?2);
