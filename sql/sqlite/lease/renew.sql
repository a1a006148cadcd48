-- Extend a lease that is still ours: compare and swap on the epoch. A lease that ended but that
-- nobody took is still ours; one that was given back (NULL) is not revived. Returns the id if it was renewed.
-- in:  id int8[], epoch int8[], lease_us int8
-- out: id int8
UPDATE sluice_outbox
   SET leased_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0))
 WHERE id = ?1 AND epoch = ?2 AND leased_until IS NOT NULL
RETURNING id;
