-- Delivered, and read as a stretch (lanes/take_stretch): nearly all between the first id and the last goes, so they
-- are not looked up one by one. `which` has a byte for each id from the first one on, 1 for those that were sent: a
-- message that was committed late may stand between them. The lanes are those of the turn; they are locked as in
-- lanes/sent, and while all of them are ours by their epochs, no message is asked for its lane. The range is asked for
-- twice: for the index, and before the byte, since a plan may ask conditions in any order, and beyond the last byte is
-- an error.
-- in:  which bytea, first int8, epoch int8[], lane int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT l.lane
      FROM sluice_outbox_lanes l
     WHERE l.lane = ANY ($4) AND (l.lane, l.epoch) IN (SELECT u.lane, u.epoch FROM unnest($4, $3) AS u (lane, epoch))
     ORDER BY l.lane
       FOR SHARE OF l
)
DELETE FROM sluice_outbox o
 WHERE o.id >= $2 AND o.id <= $2 + (octet_length($1) - 1)
   AND CASE WHEN o.id - $2 BETWEEN 0 AND octet_length($1) - 1
            THEN get_byte($1, (o.id - $2)::int) = 1
             AND CASE WHEN (SELECT count(*) FROM ours) = cardinality($4) THEN true
                      ELSE o.lane IN (SELECT s.lane FROM ours s) END END;
