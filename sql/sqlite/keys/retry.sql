-- Blocked keys are due now. A parked one is not touched.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox_keys SET due_at = min(due_at, strftime('%Y-%m-%d %H:%M:%f', 'now'))
 WHERE entity_key = ?1 AND due_at < '9999-12-31 23:59:59.999';
