-- What advisory/keep has locked for the session; the next transaction has locked it, too, and keeps that.
-- Returns an empty row for each.
-- in:  claim text[], epoch int8
-- out: none
SELECT
  FROM unnest($1) AS u (sluice_claim) CROSS JOIN (SELECT $2) AS not_needed
 WHERE pg_advisory_unlock(hashtextextended(u.sluice_claim, 'sluice_outbox'::regclass::oid::bigint));
