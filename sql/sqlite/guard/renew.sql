-- Extend a lease that is still ours: compare and swap on the epoch, which is given out once.
-- in:  claim text[], epoch int8, lease_us int8
-- out: claim text
UPDATE sluice_outbox_claims
   SET ends_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0))
 WHERE claim = ?1 AND epoch = ?2
RETURNING claim;
