-- Extend all leases of a turn, from another connection than the one that took them.
-- in:  epoch int8[], lease_us int8
-- out: claim text
UPDATE sluice_outbox_claims
   SET ends_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2 / 1000000.0))
 WHERE epoch = ?1
RETURNING claim;
