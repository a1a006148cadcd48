-- A window of the oldest messages, and the names of their keys: 'k' and the key, or 'i' and the id of a
-- message without one. Nothing else is read: only a statement after the lock sees what the last holder of
-- a key has committed. With leases = 1 `free` is 0 where the key is leased (guard). The time of the
-- statement is one for all rows: by the clock, a lease that ends meanwhile would hide the first messages
-- of a key and show the next.
-- in:  floor int8, window int8, leases int8
-- out: claim text, id int8, bytes int8, free int8
SELECT w.sluice_claim, w.id, w.sluice_bytes,
       CASE WHEN $3 > 0
                 AND (SELECT true FROM sluice_outbox_claims c
                       WHERE c.claim = w.sluice_claim AND c.ends_at > statement_timestamp()) THEN 0
            ELSE 1 END::bigint
  FROM (SELECT o.id, coalesce('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
               coalesce(octet_length(o.payload), 0)::bigint AS sluice_bytes
          FROM sluice_outbox o
         WHERE o.id >= $1 AND NOT o.held
         ORDER BY o.id
         LIMIT $2) w
 ORDER BY w.id;
