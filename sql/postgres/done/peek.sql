-- As ordered/peek, of a table whose rows stay when they have been delivered: is there anything to do, for anyone?
-- Lane by lane, which the CASE makes certain, by the index of the lanes (see lanes/take).
-- in:  none
-- out: any bool
SELECT EXISTS (SELECT FROM sluice_outbox_lanes l
                 LEFT JOIN sluice_outbox_positions p ON p.lane = l.lane
                WHERE CASE WHEN EXISTS (SELECT FROM sluice_outbox o
                                         WHERE (o.lane, o.id) >= (l.lane, coalesce(p.floor, 0)) AND o.lane <= l.lane
                                           AND NOT o.held)
                           THEN true END)
    OR EXISTS (SELECT FROM sluice_outbox_keys k WHERE k.due_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o WHERE o.delayed AND o.available_at <= statement_timestamp());
