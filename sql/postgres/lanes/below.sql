-- In which of these lanes does anything live below the lane's floor, that is not held? A row whose id was not drawn by its
-- own insert may appear there at any time. By the index of the lanes: see lanes/take.
-- in:  lane int8[], floor int8[]
-- out: lane int8
SELECT u.sluice_lane
  FROM unnest($1, $2) AS u (sluice_lane, sluice_floor)
 WHERE CASE WHEN EXISTS (SELECT FROM sluice_outbox o
                          WHERE (o.lane, o.id) >= (u.sluice_lane, 0) AND (o.lane, o.id) < (u.sluice_lane, u.sluice_floor)
                            AND NOT o.held)
            THEN true END;
