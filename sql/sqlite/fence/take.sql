-- Places where a node that is gone has to be kept out: ours to do for a while, unless another node is at it.
-- in:  busy_us int8
-- out: session int8, way int8, node text, workers int8, place text
UPDATE sluice_outbox_fences
   SET busy_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?1 / 1000000.0))
 WHERE (busy_until IS NULL OR busy_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
   AND session NOT IN (SELECT n.session FROM sluice_outbox_nodes n)
RETURNING session, way, node, workers, place;
