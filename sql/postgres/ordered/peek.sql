-- Is there anything to do, for anyone? Lane by lane, which the CASE makes certain, by the index of the lanes, which knows
-- nothing of held messages: see lanes/take. What has gone below the floor is then passed by without a look at the table.
-- in:  floor int8
-- out: any bool
SELECT EXISTS (SELECT FROM generate_series(0, (SELECT m.value::bigint - 1 FROM sluice_outbox_meta m
                                                WHERE m.name = 'lanes')) AS l (lane)
                WHERE CASE WHEN EXISTS (SELECT FROM sluice_outbox o
                                         WHERE (o.lane, o.id) >= (l.lane, $1) AND o.lane <= l.lane AND NOT o.held)
                           THEN true END)
    OR EXISTS (SELECT FROM sluice_outbox_keys k WHERE k.due_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o WHERE o.delayed AND o.available_at <= statement_timestamp());
