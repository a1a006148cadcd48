-- A window of the oldest messages, and the names of their keys: 'k' and the key, or 'i' and the id of a
-- message without one. Nothing else is read: only a statement after the lock sees what the last holder of
-- a key has committed. `free` is 0 where a turn has the key (guard), and 2 where that turn is over. The
-- time of the statement is one for all rows: by the clock, a turn that ends meanwhile would hide the first
-- messages of a key and show the next. `oldest`: of all turns. The CASE keeps the planner
-- from an index on what is not held.
-- in:  floor int8, window int8, turns int8
-- out: claim text, id int8, bytes int8, free int8, oldest int8
SELECT w.sluice_claim, w.id, w.sluice_bytes,
       CASE WHEN w.sluice_claim IN (SELECT k.claim
                                      FROM sluice_outbox_claims c CROSS JOIN unnest(c.keys) AS k (claim)
                                     WHERE c.epoch >= $3 AND c.ends_at > statement_timestamp()) THEN 0
            WHEN w.sluice_claim IN (SELECT k.claim
                                      FROM sluice_outbox_claims c CROSS JOIN unnest(c.keys) AS k (claim)
                                     WHERE c.epoch >= $3 AND c.ends_at <= statement_timestamp()) THEN 2
            ELSE 1 END::bigint,
       coalesce((SELECT min(c.epoch) FROM sluice_outbox_claims c WHERE c.epoch >= $3), 0)
  FROM (SELECT o.id, coalesce('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
               coalesce(octet_length(o.payload), 0)::bigint AS sluice_bytes
          FROM sluice_outbox o
         WHERE o.id >= $1 AND CASE WHEN o.held THEN false ELSE true END
         ORDER BY o.id
         LIMIT $2) w
 ORDER BY w.id;
