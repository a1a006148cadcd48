-- The lanes of one connection, and their epochs. They are read, not acquired: no node runs meanwhile.
-- in:  connections int8, connection int8
-- out: lane int8, epoch int8
SELECT l.lane::bigint, l.epoch FROM sluice_outbox_lanes l WHERE l.lane % $1 = $2 ORDER BY l.lane;
