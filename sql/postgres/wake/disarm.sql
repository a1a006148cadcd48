-- Awake: inserts need not notify. The others that sleep relied on our lock: they are woken, so that one of
-- them takes it.
-- in:  none
-- out: had bool, told text
SELECT pg_advisory_unlock(hashtextextended('w', 'sluice_outbox'::regclass::oid::bigint)),
       pg_notify(btrim('sluice_outbox_tr_wake', '"'), '')::text;
