-- Is there anything to do, but for what others have leased? By lane, since that index knows nothing of
-- held messages; what has gone below the floor is then passed by without a look at the table.
-- in:  floor int8
-- out: any bool
SELECT EXISTS (SELECT FROM sluice_outbox o
                WHERE o.lane >= 0 AND o.id >= $1 AND NOT o.held
                  AND NOT EXISTS (SELECT FROM sluice_outbox_claims c
                                   WHERE c.claim = coalesce('k' || o.entity_key, 'i' || o.id)
                                     AND c.ends_at > statement_timestamp()))
    OR EXISTS (SELECT FROM sluice_outbox_keys k
                WHERE k.due_at <= statement_timestamp()
                  AND NOT EXISTS (SELECT FROM sluice_outbox_claims c
                                   WHERE c.claim = 'k' || k.entity_key AND c.ends_at > statement_timestamp()))
    OR EXISTS (SELECT FROM sluice_outbox o
                WHERE o.held AND o.entity_key IS NULL AND o.available_at <= statement_timestamp()
                  AND NOT EXISTS (SELECT FROM sluice_outbox_claims c
                                   WHERE c.claim = 'i' || o.id AND c.ends_at > statement_timestamp()));
