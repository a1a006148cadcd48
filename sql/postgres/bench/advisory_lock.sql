-- The keys of the next messages behind the floor, each locked until the transaction ends.
-- in:  floor int8, batch int8
-- out: entity_key text, upto int8, locked bool
WITH due AS MATERIALIZED (
    SELECT o.id, o.entity_key
      FROM sluice_outbox o
     WHERE o.id > $1 AND NOT o.held
     ORDER BY o.id
     LIMIT $2
), keys AS MATERIALIZED (
    SELECT d.entity_key, max(d.id) AS upto FROM due d GROUP BY d.entity_key
)
SELECT k.entity_key, k.upto, pg_try_advisory_xact_lock(hashtextextended(k.entity_key, 0)) FROM keys k;
