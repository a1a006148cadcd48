-- Which of these lanes are still ours, by their epochs? They stay so until the transaction ends: the
-- next owner waits for this lock.
-- in:  lane int8[], epoch int8[]
-- out: lane int8
SELECT l.lane::bigint
  FROM sluice_outbox_lanes l
  JOIN unnest($1, $2) AS u (lane, epoch) ON l.lane = u.lane AND l.epoch = u.epoch
 WHERE l.lane = ANY ($1)
 ORDER BY l.lane
   FOR SHARE OF l;
