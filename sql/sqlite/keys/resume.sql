-- Parked keys go on.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox_keys
   SET due_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), fence = NULL, doubt = NULL, tried = NULL
 WHERE entity_key = ?1 AND due_at = '9999-12-31 23:59:59.999';
