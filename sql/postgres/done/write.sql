-- Delivered, of a table whose rows stay (schema/rotated): of each of these lanes all below its floor is done, or held. One
-- row for the whole batch, if every lane is still ours by its epoch; else none. The lanes are locked as in lanes/sent.
-- in:  lane int8[], epoch int8[], floor int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT l.lane
      FROM sluice_outbox_lanes l
     WHERE l.lane = ANY ($1) AND (l.lane, l.epoch) IN (SELECT u.lane, u.epoch FROM unnest($1, $2) AS u (lane, epoch))
     ORDER BY l.lane
       FOR SHARE OF l
)
INSERT INTO sluice_outbox_done (lanes, floors)
SELECT $1, $3
 WHERE (SELECT count(*) FROM ours) = cardinality($1);
