-- Is there anything to do, for anyone? Among the first thousand that live, in the order of the ids: what has gone and is
-- not cleaned up is passed by page after page. If those are all held there may be any number of them, and it is asked lane by
-- lane, which the CASE makes certain, by the index of the lanes, which knows nothing of held messages: see lanes/take.
-- in:  floor int8
-- out: any bool
WITH few AS MATERIALIZED (
    SELECT o.held FROM sluice_outbox o WHERE o.id >= $1 ORDER BY o.id LIMIT 1000
)
SELECT CASE WHEN EXISTS (SELECT FROM few f WHERE NOT f.held) THEN true
            WHEN (SELECT count(*) FROM few) < 1000 THEN false
            ELSE EXISTS (SELECT FROM generate_series(0, (SELECT m.value::bigint - 1 FROM sluice_outbox_meta m
                                                          WHERE m.name = 'lanes')) AS l (lane)
                          WHERE CASE WHEN EXISTS (SELECT FROM sluice_outbox o
                                                   WHERE (o.lane, o.id) >= (l.lane, $1) AND o.lane <= l.lane AND NOT o.held)
                                     THEN true END) END
    OR EXISTS (SELECT FROM sluice_outbox_keys k WHERE k.due_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o WHERE o.delayed AND o.available_at <= statement_timestamp());
