-- Places where a node that is gone has to be kept out: ours to do for a while, unless another node is at it.
-- in:  busy_us int8
-- out: session int8, way int8, node text, workers int8, place text
UPDATE sluice_outbox_fences f
   SET busy_until = clock_timestamp() + $1 * interval '1 microsecond'
 WHERE (f.busy_until IS NULL OR f.busy_until <= clock_timestamp())
   AND NOT EXISTS (SELECT FROM sluice_outbox_nodes n WHERE n.session = f.session)
RETURNING f.session, f.way::bigint, f.node, f.workers::bigint, f.place;
