-- Another number of lanes, second half, once every message is in its new lane. Nobody owns any.

-- Rows that stay are kept: a node that waits for the lock on one gets that lock. Epoch 0 is
-- nobody's, so that nothing which was taken by the old numbers can be settled by the new ones.
DELETE FROM sluice_outbox_lanes WHERE lane >= sluice_lanes;
UPDATE sluice_outbox_lanes SET owner = NULL, epoch = 0, since = clock_timestamp();
INSERT INTO sluice_outbox_lanes (lane) SELECT generate_series(0, sluice_lanes - 1)
    ON CONFLICT (lane) DO NOTHING;

-- A key without held messages waits for nothing, unless a turn has it, which may be about to hold one, or an operator
-- has parked it.
DELETE FROM sluice_outbox_keys k
 WHERE k.due_at < 'infinity'
   AND NOT EXISTS (SELECT FROM sluice_outbox o WHERE o.held AND NOT o.delayed AND o.entity_key = k.entity_key)
   AND NOT EXISTS (SELECT FROM sluice_outbox_claims c WHERE 'k' || k.entity_key = ANY (c.keys));
UPDATE sluice_outbox_keys k
   SET lane = coalesce((SELECT o.lane FROM sluice_outbox o
                         WHERE o.held AND NOT o.delayed AND o.entity_key = k.entity_key ORDER BY o.id LIMIT 1),
                       (SELECT o.lane FROM sluice_outbox o WHERE o.entity_key = k.entity_key LIMIT 1),
                       ((hashtextextended(k.entity_key, 0) & 9223372036854775807) % sluice_lanes)::integer);

UPDATE sluice_outbox_meta SET value = CAST(sluice_lanes AS text) WHERE name = 'lanes';
UPDATE sluice_outbox_meta SET value = '-infinity' WHERE name = 'lanes_pause';
