-- The key, until the transaction ends: only a later statement sees what the last one committed who had it.
-- in:  key text
-- out: key text
SELECT k.entity_key FROM sluice_outbox_keys k WHERE k.entity_key = $1 FOR UPDATE;
