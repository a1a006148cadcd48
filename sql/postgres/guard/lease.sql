-- One row for the turn, with all keys that are locked now, but for those which another turn has: it came
-- between our look and our lock, or it is over and guard/takeover was not asked to take it. The lock kept
-- rivals away while we looked; from the commit on the row does. guard/draw has run before.
-- in:  claim text[], turns int8, lease_us int8, holder int8, held_by text
-- out: none
INSERT INTO sluice_outbox_claims AS c (epoch, ends_at, holder, held_by, keys)
SELECT currval('sluice_outbox_epoch'), clock_timestamp() + $3 * interval '1 microsecond', $4, $5, f.keys
  FROM (SELECT array_agg(u.claim) AS keys
          FROM unnest($1) AS u (claim)
         WHERE u.claim NOT IN (SELECT k.claim FROM sluice_outbox_claims x CROSS JOIN unnest(x.keys) AS k (claim)
                                WHERE x.epoch >= $2)) f
 WHERE f.keys IS NOT NULL;
