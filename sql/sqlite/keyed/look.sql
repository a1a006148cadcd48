-- A window of the oldest messages, and the names of their keys: 'k' and the key, or 'i' and the id of a
-- message without one. With leases = 1 `free` is 0 where the key is leased (guard).
-- in:  floor int8, window int8, leases int8
-- out: claim text, id int8, bytes int8, free int8
SELECT w.sluice_claim, w.id, w.sluice_bytes,
       NOT (?3 > 0 AND EXISTS (SELECT 1 FROM sluice_outbox_claims c
                                WHERE c.claim = w.sluice_claim
                                  AND c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now')))
  FROM (SELECT o.id, ifnull('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
               ifnull(length(CAST(o.payload AS BLOB)), 0) AS sluice_bytes
          FROM sluice_outbox o
         WHERE o.id >= ?1 AND o.held = 0
         ORDER BY o.id
         LIMIT ?2) w
 ORDER BY w.id;
