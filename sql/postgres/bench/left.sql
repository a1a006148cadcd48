-- What is in the tables: waiting, of those set aside, dead letters. What is done and stays does not wait.
-- in:  none
-- out: waiting int8, held int8, dead int8
SELECT count(*), count(*) FILTER (WHERE o.held), (SELECT count(*) FROM sluice_outbox_dead)
  FROM sluice_outbox o
  LEFT JOIN sluice_outbox_positions p ON p.lane = o.lane
 WHERE o.held OR p.floor IS NULL OR o.id >= p.floor;
