-- Delivered: the rows go, with the statement that checks the epoch of every lane. It locks the lanes, as
-- the next owner does: without that it could delete by what it saw before a takeover, messages that the
-- next owner has read meanwhile and sends again, behind later ones of their key.
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
 WHERE o.id = ANY ($1)
   AND CASE WHEN o.lane IN (SELECT s.lane FROM ours s) THEN true END;
