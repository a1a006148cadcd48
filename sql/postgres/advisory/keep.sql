-- Keys whose transaction is about to be committed, and that stay locked for its session: the same locks once more, which
-- who has them always gets. Should the session end, they end with it.
-- in:  claim text[]
-- out: claim text
SELECT u.sluice_claim
  FROM unnest($1) AS u (sluice_claim)
 WHERE pg_try_advisory_lock(hashtextextended(u.sluice_claim, 'sluice_outbox'::regclass::oid::bigint));
