-- Lock keys of delayed messages whose time has come, but for those that another has. One message of each key comes
-- before the second of any, so that one key does not hide the others. As in keyed/due_lock, the candidates are made
-- before the first is locked.
-- in:  take int8, turns int8
-- out: claim text, id int8
WITH due AS MATERIALIZED (
    SELECT 'k' || o.entity_key AS sluice_claim, o.id AS sluice_id, o.available_at AS sluice_from
      FROM sluice_outbox o
     WHERE o.delayed AND o.entity_key IS NOT NULL AND o.available_at <= statement_timestamp()
       AND (o.leased_until IS NULL OR o.leased_until <= statement_timestamp())
       AND 'k' || o.entity_key NOT IN (SELECT k.claim
                                         FROM sluice_outbox_claims c CROSS JOIN unnest(c.keys) AS k (claim)
                                        WHERE c.epoch >= $2 AND c.ends_at > statement_timestamp())
     ORDER BY o.available_at, o.id
     LIMIT $1 * 32
), open AS MATERIALIZED (
    SELECT d.sluice_claim, d.sluice_id
      FROM due d
     ORDER BY row_number() OVER (PARTITION BY d.sluice_claim ORDER BY d.sluice_from, d.sluice_id), d.sluice_from
     LIMIT $1
)
SELECT o.sluice_claim, o.sluice_id
  FROM open o
 WHERE pg_try_advisory_xact_lock(hashtextextended(o.sluice_claim, 'sluice_outbox'::regclass::oid::bigint));
