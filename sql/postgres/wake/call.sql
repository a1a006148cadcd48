-- Wake all that sleep.
-- in:  none
-- out: told text
SELECT pg_notify(btrim('sluice_outbox_tr_wake', '"'), '')::text;
