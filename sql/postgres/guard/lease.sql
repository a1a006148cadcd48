-- A lease row for the key of each of these messages, which is locked now: new, or taken over from one
-- whose time is over. The lock kept rivals away while we looked; from the commit on the row does.
-- In the order of their names, as the fence of a rival that settles: or each would wait for the other.
-- epoch/next has run before.
-- in:  id int8[], lease_us int8, holder int8, held_by text
-- out: claim text
INSERT INTO sluice_outbox_claims AS c (claim, epoch, ends_at, holder, held_by)
SELECT coalesce('k' || o.entity_key, 'i' || o.id), currval('sluice_outbox_epoch'),
       clock_timestamp() + $2 * interval '1 microsecond', $3, $4
  FROM sluice_outbox o
 WHERE o.id = ANY ($1)
   AND NOT EXISTS (SELECT FROM sluice_outbox_claims x
                    WHERE x.claim = coalesce('k' || o.entity_key, 'i' || o.id) AND x.ends_at > clock_timestamp())
 ORDER BY coalesce('k' || o.entity_key, 'i' || o.id) COLLATE "C"
    ON CONFLICT (claim) DO UPDATE
   SET epoch = excluded.epoch, ends_at = excluded.ends_at, holder = excluded.holder, held_by = excluded.held_by
 WHERE c.ends_at <= clock_timestamp()
RETURNING c.claim;
