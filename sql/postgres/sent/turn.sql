-- First of a transaction that purges: one node at a time, and the others leave it to it. The lock is named as those of
-- keyed/lock, by a letter that no claim begins with.
-- in:  none
-- out: mine bool
SELECT pg_try_advisory_xact_lock(hashtextextended('p', 'sluice_outbox'::regclass::oid::bigint));
