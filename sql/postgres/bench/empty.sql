-- As if it were new.
-- in:  none
-- out: none
TRUNCATE sluice_outbox, sluice_outbox_dead, sluice_outbox_keys, sluice_outbox_claims, sluice_outbox_done;
