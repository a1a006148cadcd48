-- Extend all leases of these turns, from another connection than the one that took them.
-- in:  epoch int8[], lease_us int8
-- out: claim text
UPDATE sluice_outbox_claims c SET ends_at = clock_timestamp() + $2 * interval '1 microsecond'
 WHERE c.epoch = ANY ($1)
RETURNING c.claim;
