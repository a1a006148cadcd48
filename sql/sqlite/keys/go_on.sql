-- Its first message is gone: the key is due, and the next one is its head. The row stays for the nodes to delete: one
-- of them may be about to hold a message of the key.
-- in:  key text
-- out: none
UPDATE sluice_outbox_keys
   SET due_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), fence = NULL, doubt = NULL, tried = NULL, reason = NULL,
       head = ifnull((SELECT o.id FROM sluice_outbox o
                       WHERE o.held = 1 AND o.delayed = 0 AND o.entity_key = sluice_outbox_keys.entity_key ORDER BY o.id LIMIT 1), head)
 WHERE entity_key = ?1;
