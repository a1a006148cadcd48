-- The rows of positions from `low` on become one, which is the next `low`: what is dead below it is not looked at again.
-- in:  low int8
-- out: seq int8
WITH old AS (
    DELETE FROM sluice_outbox_done d WHERE d.seq >= $1 RETURNING d.lanes, d.floors
), best AS (
    SELECT u.lane, max(u.floor) AS floor
      FROM old o
     CROSS JOIN LATERAL unnest(o.lanes, o.floors) AS u (lane, floor)
     GROUP BY u.lane
)
INSERT INTO sluice_outbox_done (lanes, floors)
SELECT array_agg(b.lane), array_agg(b.floor) FROM best b HAVING count(*) > 0
RETURNING seq;
