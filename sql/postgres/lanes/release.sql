-- Give lanes up, once nothing of them is in flight.
-- in:  lane int8[], session int8
-- out: none
UPDATE sluice_outbox_lanes l SET owner = NULL, since = clock_timestamp()
 WHERE l.lane = ANY ($1) AND l.owner = $2;
