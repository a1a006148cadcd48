-- Is there anything to do, for anyone? By lane, since that index knows nothing of held messages; what
-- has gone below the floor is then passed by without a look at the table.
-- in:  floor int8
-- out: any bool
SELECT EXISTS (SELECT FROM sluice_outbox o WHERE o.lane >= 0 AND o.id >= $1 AND NOT o.held)
    OR EXISTS (SELECT FROM sluice_outbox_keys k WHERE k.due_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp())
    OR EXISTS (SELECT FROM sluice_outbox o WHERE o.delayed AND o.available_at <= statement_timestamp());
