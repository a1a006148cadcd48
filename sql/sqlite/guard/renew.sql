-- Extend a turn: compare and swap on the epoch, which is given out once. A row for each key it still has.
-- in:  epoch int8, lease_us int8
-- out: keys int8
UPDATE sluice_outbox_claims
   SET ends_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2 / 1000000.0))
 WHERE epoch = ?1
RETURNING 1;
