-- Messages of keys with work, the key with the oldest first, until they are a batch or keys_max is
-- reached. The write transaction is the lock. Rows of kind 0 are messages, key by key (a: is it
-- the first of its key?), the row of kind 1 is what was looked at: first id, last id, how many.
-- in:  floor int8, window int8, batch int8, batch_bytes int8, keys_max int8
-- out: kind int8, id int8, a int8, b int8
WITH win AS MATERIALIZED (
    SELECT o.id, ifnull('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
           ifnull(length(CAST(o.payload AS BLOB)), 0) AS sluice_bytes
      FROM sluice_outbox o
     WHERE o.id >= ?1 AND o.held = 0
     ORDER BY o.id
     LIMIT ?2
), open AS MATERIALIZED (
    SELECT w.id, w.sluice_bytes, min(w.id) OVER (PARTITION BY w.sluice_claim) AS sluice_head
      FROM win w
     WHERE NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c
                        WHERE c.claim = w.sluice_claim AND c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now'))
), walk AS MATERIALIZED (
    SELECT o.id, o.sluice_head,
           row_number() OVER (ORDER BY o.sluice_head, o.id) AS sluice_n,
           sum(o.id = o.sluice_head) OVER (ORDER BY o.sluice_head, o.id ROWS UNBOUNDED PRECEDING) AS sluice_keys,
           sum(o.sluice_bytes) OVER (ORDER BY o.sluice_head, o.id ROWS UNBOUNDED PRECEDING) - o.sluice_bytes
           AS sluice_before
      FROM open o
)
SELECT * FROM (SELECT 0, w.id, w.id = w.sluice_head, 0 FROM walk w
                WHERE w.sluice_n <= ?3 AND w.sluice_before < ?4 AND w.sluice_keys <= ?5 ORDER BY w.sluice_n)
UNION ALL
SELECT 1, ifnull(min(w.id), 0), ifnull(max(w.id), 0), count(*) FROM win w;
