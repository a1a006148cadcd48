-- Is there anything to do, but for what others have leased? By lane, since that index knows nothing of
-- held messages; what has gone below the floor is then passed by without a look at the table.
-- in:  floor int8, turns int8
-- out: any bool
WITH leased AS MATERIALIZED (
    SELECT k.claim
      FROM sluice_outbox_claims c
     CROSS JOIN unnest(c.keys) AS k (claim)
     WHERE c.epoch >= $2 AND c.ends_at > statement_timestamp()
)
SELECT EXISTS (SELECT FROM sluice_outbox o
                WHERE o.lane >= 0 AND o.id >= $1 AND NOT o.held
                  AND coalesce('k' || o.entity_key, 'i' || o.id) NOT IN (SELECT l.claim FROM leased l))
    OR EXISTS (SELECT FROM sluice_outbox_keys k
                WHERE k.due_at <= statement_timestamp()
                  AND 'k' || k.entity_key NOT IN (SELECT l.claim FROM leased l))
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp()
                  AND 'i' || o.id NOT IN (SELECT l.claim FROM leased l))
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.delayed AND o.available_at <= statement_timestamp()
                  AND 'k' || o.entity_key NOT IN (SELECT l.claim FROM leased l));
