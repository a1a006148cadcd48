-- Is there anything to do, but for what others have leased? Among the first thousand that live, or lane by lane, as in
-- ordered/peek.
-- in:  floor int8, turns int8
-- out: any bool
WITH leased AS MATERIALIZED (
    SELECT k.claim
      FROM sluice_outbox_claims c
     CROSS JOIN unnest(c.keys) AS k (claim)
     WHERE c.epoch >= $2 AND c.ends_at > statement_timestamp()
), few AS MATERIALIZED (
    SELECT o.held, coalesce('k' || o.entity_key, 'i' || o.id) AS sluice_claim
      FROM sluice_outbox o WHERE o.id >= $1 ORDER BY o.id LIMIT 1000
)
SELECT CASE WHEN EXISTS (SELECT FROM few f WHERE NOT f.held AND f.sluice_claim NOT IN (SELECT c.claim FROM leased c)) THEN true
            WHEN (SELECT count(*) FROM few) < 1000 THEN false
            ELSE EXISTS (SELECT FROM generate_series(0, (SELECT m.value::bigint - 1 FROM sluice_outbox_meta m
                                                          WHERE m.name = 'lanes')) AS l (lane)
                          WHERE CASE WHEN EXISTS (SELECT FROM sluice_outbox o
                                                   WHERE (o.lane, o.id) >= (l.lane, $1) AND o.lane <= l.lane AND NOT o.held
                                                     AND coalesce('k' || o.entity_key, 'i' || o.id)
                                                         NOT IN (SELECT c.claim FROM leased c))
                                     THEN true END) END
    OR EXISTS (SELECT FROM sluice_outbox_keys k
                WHERE k.due_at <= statement_timestamp()
                  AND 'k' || k.entity_key NOT IN (SELECT l.claim FROM leased l))
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp()
                  AND 'i' || o.id NOT IN (SELECT l.claim FROM leased l))
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.delayed AND o.available_at <= statement_timestamp()
                  AND 'k' || o.entity_key NOT IN (SELECT l.claim FROM leased l));
