-- A lease row for the key of this message: new, or taken over from one whose time is over. epoch/next
-- has run before.
-- in:  id int8[], lease_us int8, holder int8, held_by text
-- out: claim text
INSERT INTO sluice_outbox_claims (claim, epoch, ends_at, holder, held_by)
SELECT ifnull('k' || o.entity_key, 'i' || o.id),
       (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch'),
       strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2 / 1000000.0)), ?3, ?4
  FROM sluice_outbox o
 WHERE o.id = ?1
    ON CONFLICT (claim) DO UPDATE
   SET epoch = excluded.epoch, ends_at = excluded.ends_at, holder = excluded.holder, held_by = excluded.held_by
 WHERE ends_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
RETURNING claim;
