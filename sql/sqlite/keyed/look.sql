-- A window of the oldest messages, and the names of their keys: 'k' and the key, or 'i' and the id of a
-- message without one. `free` is 0 where a turn has the key (guard), and 2 where that turn is
-- over. `oldest`: of all turns.
-- in:  floor int8, window int8, turns int8
-- out: claim text, id int8, bytes int8, free int8, oldest int8
SELECT w.sluice_claim, w.id, w.sluice_bytes,
       ifnull((SELECT CASE WHEN c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now') THEN 0 ELSE 2 END
                 FROM sluice_outbox_claims c
                WHERE c.claim = w.sluice_claim AND c.epoch >= ?3), 1),
       ifnull((SELECT min(c.epoch) FROM sluice_outbox_claims c WHERE c.epoch >= ?3), 0)
  FROM (SELECT o.id, ifnull('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
               ifnull(length(CAST(o.payload AS BLOB)), 0) AS sluice_bytes
          FROM sluice_outbox o
         WHERE o.id >= ?1 AND o.held = 0
         ORDER BY o.id
         LIMIT ?2) w
 ORDER BY w.id;
