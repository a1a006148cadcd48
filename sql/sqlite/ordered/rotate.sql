-- A key that was served and has more: behind the others that are due.
-- in:  entity_key text[]
-- out: none
UPDATE sluice_outbox_keys SET due_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
 WHERE entity_key = ?1 AND due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now');
