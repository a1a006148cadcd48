-- Extend leases that are still ours: compare and swap on the epoch. A lease that ended but that
-- nobody took is still ours. Returns the ids that were renewed.
-- in:  id int8[], epoch int8[], lease_us int8
-- out: id int8
UPDATE sluice_outbox o
   SET leased_until = clock_timestamp() + $3 * interval '1 microsecond'
  FROM unnest($1, $2) AS u (id, epoch)
 WHERE o.id = u.id AND o.epoch = u.epoch
RETURNING o.id;
