-- Delivered: the rows go, where the epoch of their lane is still ours. Both in one statement, and so
-- on one snapshot.
-- in:  id int8[], lane int8[], epoch int8[]
-- out: none
DELETE FROM sluice_outbox o
 WHERE o.id = ANY ($1)
   AND o.lane = ANY (ARRAY(
    SELECT l.lane
      FROM sluice_outbox_lanes l
      JOIN unnest($2, $3) AS u (lane, epoch) ON l.lane = u.lane AND l.epoch = u.epoch));
