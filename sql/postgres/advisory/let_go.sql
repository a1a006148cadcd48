-- What advisory/keep has locked for the session; the next transaction has locked it, too, and keeps that.
-- in:  claim text[]
-- out: claim text
SELECT u.sluice_claim
  FROM unnest($1) AS u (sluice_claim)
 WHERE pg_advisory_unlock(hashtextextended(u.sluice_claim, 'sluice_outbox'::regclass::oid::bigint));
