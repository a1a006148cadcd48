-- Parked keys go on.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox_keys k SET due_at = clock_timestamp(), fence = NULL, doubt = NULL, tried = NULL
 WHERE k.entity_key = ANY ($1) AND CASE WHEN k.due_at = 'infinity' THEN true END;
