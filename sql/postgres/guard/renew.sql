-- Extend leases that are still ours: compare and swap on the epoch, which is given out once.
-- in:  claim text[], epoch int8, lease_us int8
-- out: claim text
UPDATE sluice_outbox_claims c SET ends_at = clock_timestamp() + $3 * interval '1 microsecond'
 WHERE c.claim = ANY ($1) AND c.epoch = $2
RETURNING c.claim;
