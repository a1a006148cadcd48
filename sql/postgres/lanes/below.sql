-- In which of these lanes does anything live below the lane's floor, that is not held? A row whose id was not drawn by its
-- own insert may appear there at any time. It is looked in the order of the ids first: what has gone and is not cleaned up
-- is passed by page after page, at a hundredth of what it costs lane by lane, where the next row is on another page. But so
-- all that lives there is passed by as well, held or another worker's: where that is much, by the index of the lanes (see
-- lanes/take). What was found is asked for once and put in a hash table, and not joined: there may be thousands of lanes.
-- in:  lane int8[], floor int8[]
-- out: lane int8
WITH few AS MATERIALIZED (
    SELECT f.lane, min(f.id) FILTER (WHERE NOT f.held) AS sluice_low, count(*) AS sluice_rows
      FROM (SELECT o.id, o.lane, o.held
              FROM sluice_outbox o
             WHERE o.id >= 0 AND o.id < (SELECT max(u.sluice_floor) FROM unnest($2) AS u (sluice_floor))
             ORDER BY o.id
             LIMIT 20000) f
     GROUP BY f.lane
)
SELECT u.sluice_lane
  FROM unnest($1, $2) AS u (sluice_lane, sluice_floor)
 WHERE CASE WHEN (SELECT coalesce(sum(w.sluice_rows), 0) FROM few w) < 20000
            THEN u.sluice_lane IN (SELECT b.sluice_lane
                                     FROM (SELECT v.sluice_lane, v.sluice_floor, NULL::bigint AS sluice_low
                                             FROM unnest($1, $2) AS v (sluice_lane, sluice_floor)
                                           UNION ALL SELECT w.lane, NULL, w.sluice_low FROM few w) b
                                    GROUP BY b.sluice_lane
                                   HAVING min(b.sluice_low) < max(b.sluice_floor))
            ELSE EXISTS (SELECT FROM sluice_outbox o
                          WHERE (o.lane, o.id) >= (u.sluice_lane, 0) AND (o.lane, o.id) < (u.sluice_lane, u.sluice_floor)
                            AND NOT o.held) END;
