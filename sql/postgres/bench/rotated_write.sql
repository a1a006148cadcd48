-- Delivered: one row says so of all up to the floor, in the lanes of one connection.
-- in:  floor int8, connections int8, connection int8
-- out: none
INSERT INTO sluice_outbox_done (lanes, floors)
SELECT array_agg(l.lane::bigint), array_agg($1 + 1) FROM sluice_outbox_lanes l WHERE l.lane % $2 = $3;
