-- Stop a key until an operator says otherwise, whether it has messages or not; one that is parked already stays as it
-- is. keys/look has run before in this transaction: the number of lanes cannot change while the outbox is in use.
-- in:  key text, reason text
-- out: none
INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at, reason, fence)
SELECT ?1,
       (length(?1)
       + ifnull(unicode(substr(?1, 1, 1)), 0) * 31
       + ifnull(unicode(substr(?1, 2, 1)), 0) * 1009
       + ifnull(unicode(substr(?1, 3, 1)), 0) * 30011
       + ifnull(unicode(substr(?1, 4, 1)), 0) * 900001
       + ifnull(unicode(substr(?1, 5, 1)), 0) * 27000011
       + ifnull(unicode(substr(?1, 6, 1)), 0) * 810000023
       + ifnull(unicode(substr(?1, 7, 1)), 0) * 131
       + ifnull(unicode(substr(?1, 8, 1)), 0) * 17159
       + ifnull(unicode(substr(?1, 9, 1)), 0) * 2248091
       + ifnull(unicode(substr(?1, 10, 1)), 0) * 294499921
       + ifnull(unicode(substr(?1, 11, 1)), 0) * 613
       + ifnull(unicode(substr(?1, 12, 1)), 0) * 74093
       + ifnull(unicode(substr(?1, 13, 1)), 0) * 9000011
       + ifnull(unicode(substr(?1, 14, 1)), 0) * 104729
       + ifnull(unicode(substr(?1, 15, 1)), 0) * 1299709
       + ifnull(unicode(substr(?1, 16, 1)), 0) * 15485863
       + ifnull(unicode(substr(?1, 17, 1)), 0) * 179424673
       + ifnull(unicode(substr(?1, 18, 1)), 0) * 37
       + ifnull(unicode(substr(?1, 19, 1)), 0) * 1013
       + ifnull(unicode(substr(?1, 20, 1)), 0) * 30013
       + ifnull(unicode(substr(?1, 21, 1)), 0) * 900007
       + ifnull(unicode(substr(?1, 22, 1)), 0) * 27000013
       + ifnull(unicode(substr(?1, 23, 1)), 0) * 810000037
       + ifnull(unicode(substr(?1, 24, 1)), 0) * 137
       + ifnull(unicode(substr(?1, -1, 1)), 0) * 17167
       + ifnull(unicode(substr(?1, -2, 1)), 0) * 2248093
       + ifnull(unicode(substr(?1, -3, 1)), 0) * 294499957
       + ifnull(unicode(substr(?1, -4, 1)), 0) * 617
       + ifnull(unicode(substr(?1, -5, 1)), 0) * 74099
       + ifnull(unicode(substr(?1, -6, 1)), 0) * 9000041
       + ifnull(unicode(substr(?1, -7, 1)), 0) * 104743
       + ifnull(unicode(substr(?1, -8, 1)), 0) * 1299721
       ) % 1000003 % CAST(m.value AS INTEGER),
       0, '9999-12-31 23:59:59.999', ?2, 9223372036854775807
  FROM sluice_outbox_meta m
 WHERE m.name = 'lanes'
    ON CONFLICT (entity_key) DO UPDATE
   SET due_at = excluded.due_at, reason = coalesce(excluded.reason, reason), fence = excluded.fence
 WHERE due_at < '9999-12-31 23:59:59.999';
