-- Keys that were served and have more: behind the others that are due.
-- in:  entity_key text[]
-- out: none
UPDATE sluice_outbox_keys k SET due_at = clock_timestamp()
 WHERE k.entity_key = ANY ($1)
   AND CASE WHEN k.due_at <= statement_timestamp() THEN true END;
