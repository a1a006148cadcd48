-- Who owns what. A lane whose owner is no node is free: owner 0.
-- in:  none
-- out: lane int8, owner int8, epoch int8, age_us int8
SELECT l.lane, ifnull(n.session, 0), l.epoch,
       CAST((julianday('now') - julianday(l.since)) * 86400000.0 AS INTEGER) * 1000
  FROM sluice_outbox_lanes l
  LEFT JOIN sluice_outbox_nodes n ON n.session = l.owner
 ORDER BY l.lane;
