-- Lock keys with work, the oldest first, until they have a batch of messages or keys_max is reached,
-- and not one more. Who already has a lock is passed over. One key after the other: beside a LIMIT the
-- lock function would run for more rows than are returned.
-- The lock is 64 bits of a hash of 'k' and the key, or of 'i' and the id of a message without one,
-- seeded with the table so that other tables and other users of such locks do not meet it.
-- The time of the statement is one for all rows: by the clock, a lease that ends meanwhile would hide
-- the first messages of a key and show the next.
-- Only a later statement sees what the last holder of a lock has committed: nothing is read here but
-- ids. Rows of kind 0 are messages, key by key (a: is it the first of its key?); the row of kind 1 is
-- what was looked at: first id, last id, how many. Each look begins at the floor, so that of each key
-- it sees all that is there up to the end of the window.
-- in:  floor int8, window int8, batch int8, batch_bytes int8, keys_max int8
-- out: kind int8, id int8, a int8, b int8
WITH RECURSIVE win AS MATERIALIZED (
    SELECT w.*, hashtextextended(w.sluice_claim, 'sluice_outbox'::regclass::oid::bigint) AS sluice_lock
      FROM (SELECT o.id, coalesce('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
                   coalesce(octet_length(o.payload), 0)::bigint AS sluice_bytes
              FROM sluice_outbox o
             WHERE o.id >= $1 AND NOT o.held
             ORDER BY o.id
             LIMIT $2) w
), work AS MATERIALIZED (
    SELECT w.id, w.sluice_lock, min(w.id) OVER k AS sluice_head, count(*) OVER k AS sluice_count,
           sum(w.sluice_bytes) OVER k AS sluice_sum
      FROM win w
     WHERE NOT EXISTS (SELECT FROM sluice_outbox_claims c
                        WHERE c.claim = w.sluice_claim AND c.ends_at > statement_timestamp())
    WINDOW k AS (PARTITION BY w.sluice_lock)
), open AS MATERIALIZED (
    SELECT array_agg(w.id) AS sluice_ids, array_agg(w.sluice_lock) AS sluice_locks,
           array_agg(w.sluice_count) AS sluice_counts, array_agg(w.sluice_sum::bigint) AS sluice_sums
      FROM (SELECT * FROM work ORDER BY sluice_head, id) w
), walk (n, next, rows, bytes, keys, ours) AS MATERIALIZED (
    SELECT 0::bigint, 1::bigint, 0::bigint, 0::bigint, 0::bigint, false
     UNION ALL
    SELECT w.next, w.next + o.sluice_counts[w.next],
           w.rows + CASE WHEN s.ours THEN o.sluice_counts[w.next] ELSE 0 END,
           w.bytes + CASE WHEN s.ours THEN o.sluice_sums[w.next] ELSE 0 END,
           w.keys + s.ours::integer, s.ours
      FROM walk w
     CROSS JOIN open o
     CROSS JOIN LATERAL (SELECT pg_try_advisory_xact_lock(o.sluice_locks[w.next]) AS ours OFFSET 0) s
     WHERE w.next <= cardinality(o.sluice_ids) AND w.rows < $3 AND w.bytes < $4 AND w.keys < $5
)
SELECT 0::bigint, o.sluice_ids[i.n], (i.n = w.n)::integer::bigint, 0::bigint
  FROM walk w
 CROSS JOIN open o
 CROSS JOIN LATERAL generate_series(w.n, w.next - 1) AS i (n)
 WHERE w.ours
UNION ALL
SELECT 1::bigint, coalesce(min(w.id), 0), coalesce(max(w.id), 0), count(*) FROM win w;
