-- Awake: inserts need not notify. The others that sleep relied on our lock: with tell = 1 they are woken,
-- so that one of them takes it.
-- in:  tell int8
-- out: had bool, told text
SELECT pg_advisory_unlock(hashtextextended('w', 'sluice_outbox'::regclass::oid::bigint)),
       CASE WHEN $1 > 0 THEN pg_notify(btrim('sluice_outbox_tr_wake', '"'), '')::text END;
