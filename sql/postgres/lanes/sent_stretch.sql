-- Delivered, and read as a stretch (lanes/take_stretch): nearly all between the first id and the last goes, so they
-- are not looked up one by one. The ids count, not the range: a message that was committed late may
-- stand between them, and was not sent. They come in order. The lanes are those of the turn; they are locked as in
-- lanes/sent.
-- in:  id int8[], epoch int8[], lane int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT l.lane
      FROM sluice_outbox_lanes l
     WHERE l.lane = ANY ($3) AND (l.lane, l.epoch) IN (SELECT u.lane, u.epoch FROM unnest($3, $2) AS u (lane, epoch))
     ORDER BY l.lane
       FOR SHARE OF l
)
DELETE FROM sluice_outbox o
 WHERE o.id >= ($1)[1] AND o.id <= ($1)[cardinality($1)]
   AND CASE WHEN o.id IN (SELECT unnest($1)) AND o.lane IN (SELECT s.lane FROM ours s) THEN true END;
