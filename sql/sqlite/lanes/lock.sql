-- Locks nothing: the write transaction has locked the file.
-- in:  lane int8[]
-- out: lane int8
SELECT l.lane FROM sluice_outbox_lanes l WHERE l.lane = ?1;
