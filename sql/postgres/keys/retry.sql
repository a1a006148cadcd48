-- Blocked keys are due now. A parked one is not touched.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox_keys k SET due_at = least(k.due_at, clock_timestamp())
 WHERE k.entity_key = ANY ($1) AND CASE WHEN k.due_at < 'infinity' THEN true END;
