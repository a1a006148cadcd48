-- Lock these keys until the transaction ends, but for those that another has. The lock is 64 bits of a
-- hash, seeded with the table so that other tables and other users of such locks do not meet it.
-- in:  claim text[]
-- out: claim text
SELECT u.sluice_claim
  FROM unnest($1) AS u (sluice_claim)
 WHERE pg_try_advisory_xact_lock(hashtextextended(u.sluice_claim, 'sluice_outbox'::regclass::oid::bigint));
