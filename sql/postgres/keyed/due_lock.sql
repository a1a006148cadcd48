-- Lock blocked keys that are due, the longest due first, and held messages without a key. The candidates
-- are made before the first is locked: then the LIMIT locks no more than it returns. `id`: the first
-- that is held; none: the key waits for nothing. The time is the statement's: that of the clock changes
-- while it runs, and no index could be asked for it. A key is compared as in lanes/due.
-- in:  keys_max int8, turns int8
-- out: claim text, id int8
WITH due AS MATERIALIZED (
    (SELECT 'k' || k.entity_key AS sluice_claim,
            (SELECT o.id
               FROM (SELECT k.entity_key COLLATE "default" AS entity_key) n, sluice_outbox o
              WHERE o.held AND NOT o.delayed AND o.entity_key >= n.entity_key AND o.entity_key <= n.entity_key
              ORDER BY o.entity_key, o.id LIMIT 1)
            AS sluice_id
       FROM sluice_outbox_keys k
      WHERE k.due_at <= statement_timestamp()
      ORDER BY k.due_at
      LIMIT $1)
    UNION ALL
    (SELECT 'i' || o.id, o.id
       FROM sluice_outbox o
      WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp()
        AND (o.leased_until IS NULL OR o.leased_until <= statement_timestamp())
      ORDER BY o.available_at
      LIMIT $1)
), open AS MATERIALIZED (
    SELECT d.sluice_claim, d.sluice_id
      FROM due d
     WHERE d.sluice_claim NOT IN (SELECT k.claim
                                    FROM sluice_outbox_claims c CROSS JOIN unnest(c.keys) AS k (claim)
                                   WHERE c.epoch >= $2 AND c.ends_at > statement_timestamp())
)
SELECT o.sluice_claim, o.sluice_id
  FROM open o
 WHERE pg_try_advisory_xact_lock(hashtextextended(o.sluice_claim, 'sluice_outbox'::regclass::oid::bigint))
 LIMIT $1;
