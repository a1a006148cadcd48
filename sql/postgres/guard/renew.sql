-- Extend a turn: compare and swap on the epoch, which is given out once. `keys`: so many it still has.
-- in:  epoch int8, lease_us int8
-- out: keys int8
UPDATE sluice_outbox_claims c SET ends_at = clock_timestamp() + $2 * interval '1 microsecond'
 WHERE c.epoch = $1
RETURNING cardinality(c.keys)::bigint;
