-- Another number of lanes, second half, once every message is in its new lane. Nobody owns any.

-- Epoch 0 is nobody's, so that nothing which was taken by the old numbers can be settled by the new
-- ones.
DELETE FROM sluice_outbox_lanes WHERE lane >= sluice_lanes;
UPDATE sluice_outbox_lanes SET owner = NULL, epoch = 0, since = strftime('%Y-%m-%d %H:%M:%f', 'now');
INSERT OR IGNORE INTO sluice_outbox_lanes (lane)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < sluice_lanes)
SELECT i FROM n;

-- A key without held messages waits for nothing, unless a turn has it, which may be about to hold one.
DELETE FROM sluice_outbox_keys
 WHERE NOT EXISTS (SELECT 1 FROM sluice_outbox o
                    WHERE o.held = 1 AND o.entity_key = sluice_outbox_keys.entity_key)
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c WHERE c.claim = 'k' || sluice_outbox_keys.entity_key);
UPDATE sluice_outbox_keys
   SET lane = ifnull((SELECT o.lane FROM sluice_outbox o
                       WHERE o.entity_key = sluice_outbox_keys.entity_key ORDER BY o.held DESC, o.id LIMIT 1), 0);

UPDATE sluice_outbox_meta SET value = CAST(sluice_lanes AS TEXT) WHERE name = 'lanes';
UPDATE sluice_outbox_meta SET value = '' WHERE name = 'lanes_pause';
