-- Take over a lane that is free, or ours already by an answer that was lost; each change of owner
-- raises the epoch. epoch/next has run before in this transaction. Only a node that lives may own,
-- and nobody while the number of lanes changes.
-- in:  lane int8[], session int8
-- out: lane int8, epoch int8
UPDATE sluice_outbox_lanes
   SET owner = ?2, since = strftime('%Y-%m-%d %H:%M:%f', 'now'),
       epoch = (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch')
 WHERE lane = ?1
   AND (owner IS NULL OR owner = ?2 OR owner NOT IN (SELECT n.session FROM sluice_outbox_nodes n))
   AND ?2 IN (SELECT n.session FROM sluice_outbox_nodes n)
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_meta m
                    WHERE m.name = 'lanes_pause' AND m.value > strftime('%Y-%m-%d %H:%M:%f', 'now'))
RETURNING lane, epoch;
