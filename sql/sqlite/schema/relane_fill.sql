-- Another number of lanes, second half, once every message is in its new lane. Nobody owns any.

-- Epoch 0 is nobody's, so that nothing which was taken by the old numbers can be settled by the new
-- ones.
DELETE FROM sluice_outbox_lanes WHERE lane >= sluice_lanes;
UPDATE sluice_outbox_lanes SET owner = NULL, epoch = 0, since = strftime('%Y-%m-%d %H:%M:%f', 'now');
INSERT OR IGNORE INTO sluice_outbox_lanes (lane)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < sluice_lanes)
SELECT i FROM n;

-- A key without held messages waits for nothing, unless a turn has it, which may be about to hold one, or an operator
-- has parked it.
DELETE FROM sluice_outbox_keys
 WHERE due_at < '9999-12-31 23:59:59.999'
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox o
                    WHERE o.held = 1 AND o.delayed = 0 AND o.entity_key = sluice_outbox_keys.entity_key)
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c WHERE c.claim = 'k' || sluice_outbox_keys.entity_key);
UPDATE sluice_outbox_keys
   SET lane = ifnull((SELECT o.lane FROM sluice_outbox o
                       WHERE o.entity_key = sluice_outbox_keys.entity_key ORDER BY o.held DESC, o.id LIMIT 1),
              (length(entity_key)
              + ifnull(unicode(substr(entity_key, 1, 1)), 0) * 31
              + ifnull(unicode(substr(entity_key, 2, 1)), 0) * 1009
              + ifnull(unicode(substr(entity_key, 3, 1)), 0) * 30011
              + ifnull(unicode(substr(entity_key, 4, 1)), 0) * 900001
              + ifnull(unicode(substr(entity_key, 5, 1)), 0) * 27000011
              + ifnull(unicode(substr(entity_key, 6, 1)), 0) * 810000023
              + ifnull(unicode(substr(entity_key, 7, 1)), 0) * 131
              + ifnull(unicode(substr(entity_key, 8, 1)), 0) * 17159
              + ifnull(unicode(substr(entity_key, 9, 1)), 0) * 2248091
              + ifnull(unicode(substr(entity_key, 10, 1)), 0) * 294499921
              + ifnull(unicode(substr(entity_key, 11, 1)), 0) * 613
              + ifnull(unicode(substr(entity_key, 12, 1)), 0) * 74093
              + ifnull(unicode(substr(entity_key, 13, 1)), 0) * 9000011
              + ifnull(unicode(substr(entity_key, 14, 1)), 0) * 104729
              + ifnull(unicode(substr(entity_key, 15, 1)), 0) * 1299709
              + ifnull(unicode(substr(entity_key, 16, 1)), 0) * 15485863
              + ifnull(unicode(substr(entity_key, 17, 1)), 0) * 179424673
              + ifnull(unicode(substr(entity_key, 18, 1)), 0) * 37
              + ifnull(unicode(substr(entity_key, 19, 1)), 0) * 1013
              + ifnull(unicode(substr(entity_key, 20, 1)), 0) * 30013
              + ifnull(unicode(substr(entity_key, 21, 1)), 0) * 900007
              + ifnull(unicode(substr(entity_key, 22, 1)), 0) * 27000013
              + ifnull(unicode(substr(entity_key, 23, 1)), 0) * 810000037
              + ifnull(unicode(substr(entity_key, 24, 1)), 0) * 137
              + ifnull(unicode(substr(entity_key, -1, 1)), 0) * 17167
              + ifnull(unicode(substr(entity_key, -2, 1)), 0) * 2248093
              + ifnull(unicode(substr(entity_key, -3, 1)), 0) * 294499957
              + ifnull(unicode(substr(entity_key, -4, 1)), 0) * 617
              + ifnull(unicode(substr(entity_key, -5, 1)), 0) * 74099
              + ifnull(unicode(substr(entity_key, -6, 1)), 0) * 9000041
              + ifnull(unicode(substr(entity_key, -7, 1)), 0) * 104743
              + ifnull(unicode(substr(entity_key, -8, 1)), 0) * 1299721
              ) % 1000003 % sluice_lanes);

UPDATE sluice_outbox_meta SET value = CAST(sluice_lanes AS TEXT) WHERE name = 'lanes';
UPDATE sluice_outbox_meta SET value = '' WHERE name = 'lanes_pause';
