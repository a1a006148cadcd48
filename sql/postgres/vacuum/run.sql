-- What was deleted is room for new rows again. It waits for nobody and nobody waits for it: not for another vacuum, nor
-- for a lock to give pages at the end back, which autovacuum does. Never in a transaction.
-- in:  none
-- out: none
VACUUM (SKIP_LOCKED, TRUNCATE off, PARALLEL 0) sluice_outbox, sluice_outbox_keys, sluice_outbox_claims;
