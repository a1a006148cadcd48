-- Keys whose transaction is about to be committed, and that stay locked for its session: the same locks once more, which
-- who has them always gets. Should the session end, they end with it.
-- They need no epoch, no end and no name, as the rows of SQLite do. Returns an empty row for each.
-- in:  claim text[], epoch int8, lease_us int8, held_by text
-- out: none
SELECT
  FROM unnest($1) AS u (sluice_claim) CROSS JOIN (SELECT $2, $3, $4) AS not_needed
 WHERE pg_try_advisory_lock(hashtextextended(u.sluice_claim, 'sluice_outbox'::regclass::oid::bigint));
