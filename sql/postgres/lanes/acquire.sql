-- Take over lanes that are free, or ours already by an answer that was lost; each change of owner
-- raises the epoch. lanes/lock and epoch/next have run before in this transaction. Only a node that
-- lives may own, and nobody while the number of lanes changes.
-- in:  lane int8[], session int8
-- out: lane int8, epoch int8
UPDATE sluice_outbox_lanes l
   SET owner = $2, epoch = currval('sluice_outbox_epoch'), since = clock_timestamp()
 WHERE l.lane = ANY ($1)
   AND (l.owner IS NULL OR l.owner = $2
        OR NOT EXISTS (SELECT FROM sluice_outbox_nodes n WHERE n.session = l.owner))
   AND EXISTS (SELECT FROM sluice_outbox_nodes n WHERE n.session = $2)
   AND NOT EXISTS (SELECT FROM sluice_outbox_meta m
                    WHERE m.name = 'lanes_pause' AND m.value::timestamptz > clock_timestamp())
RETURNING l.lane::bigint, l.epoch;
