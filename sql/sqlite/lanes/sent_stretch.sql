-- Delivered, and read as a stretch (lanes/take_stretch): one statement for all of them. The lanes are those of the turn,
-- and the messages were read from them: while all of them are ours by their epochs, the lane of none is computed.
-- in:  id json, epoch json, lane json
-- out: none
WITH ours AS MATERIALIZED (
    SELECT l.lane
      FROM json_each(?3) u
     CROSS JOIN sluice_outbox_lanes l
     WHERE l.lane = u.value AND l.epoch = json_extract(?2, '$[' || u.key || ']')
)
DELETE FROM sluice_outbox
 WHERE id IN (SELECT u.value FROM json_each(?1) u)
   AND CASE WHEN (SELECT count(*) FROM ours) = json_array_length(?3) THEN 1
            ELSE lane IN (SELECT s.lane FROM ours s) END;
