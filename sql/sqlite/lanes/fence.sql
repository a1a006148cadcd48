-- Is this lane still ours, by its epoch? It stays so until the write transaction ends.
-- in:  lane int8[], epoch int8[]
-- out: lane int8
SELECT l.lane FROM sluice_outbox_lanes l WHERE l.lane = ?1 AND l.epoch = ?2;
