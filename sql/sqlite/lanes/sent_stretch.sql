-- Delivered, and read as a stretch (lanes/take_stretch): one statement for all of them, nearly all between the first id
-- and the last. `which` has a byte for each id from the first one on, 1 for those that were sent. The lanes are those of
-- the turn, and the messages were read from them: while all of them are ours by their epochs, the lane of none is computed.
-- in:  which blob, first int8, epoch json, lane json
-- out: none
WITH ours AS MATERIALIZED (
    SELECT l.lane
      FROM json_each(?4) u
     CROSS JOIN sluice_outbox_lanes l
     WHERE l.lane = u.value AND l.epoch = json_extract(?3, '$[' || u.key || ']')
)
DELETE FROM sluice_outbox
 WHERE id >= ?2 AND id <= ?2 + (length(?1) - 1) AND substr(?1, id - ?2 + 1, 1) = x'01'
   AND CASE WHEN (SELECT count(*) FROM ours) = json_array_length(?4) THEN 1
            ELSE lane IN (SELECT s.lane FROM ours s) END;
