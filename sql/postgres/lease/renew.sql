-- Extend leases that are still ours: compare and swap on the epoch. A lease that ended but that
-- nobody took is still ours; one that was given back (NULL) is not revived. Returns the ids that
-- were renewed.
-- in:  id int8[], epoch int8[], lease_us int8
-- out: id int8
UPDATE sluice_outbox o
   SET leased_until = clock_timestamp() + $3 * interval '1 microsecond'
 WHERE o.id = ANY ($1)
   AND CASE WHEN (o.id, o.epoch) IN (SELECT u.id, u.epoch FROM unnest($1, $2) AS u (id, epoch))
            THEN true END
   AND o.leased_until IS NOT NULL
RETURNING o.id;
