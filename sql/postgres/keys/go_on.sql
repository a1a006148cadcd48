-- Its first message is gone: the key is due, and the next one is its head. The row stays for the nodes to delete: one
-- of them may be about to hold a message of the key.
-- in:  key text
-- out: none
UPDATE sluice_outbox_keys k
   SET due_at = clock_timestamp(), fence = NULL, doubt = NULL, tried = NULL, reason = NULL,
       head = coalesce((SELECT o.id FROM sluice_outbox o
                         WHERE o.held AND NOT o.delayed AND o.entity_key = k.entity_key ORDER BY o.id LIMIT 1), k.head)
 WHERE k.entity_key = $1;
