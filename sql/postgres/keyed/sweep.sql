-- Keys that are due, locked now, and wait for nothing are as any other.
-- in:  claim text[]
-- out: none
DELETE FROM sluice_outbox_keys k
 USING unnest($1) AS u (sluice_claim)
 WHERE k.entity_key = substr(u.sluice_claim, 2) AND left(u.sluice_claim, 1) = 'k'
   AND k.due_at <= statement_timestamp()
   AND NOT EXISTS (SELECT FROM sluice_outbox o WHERE o.held AND o.entity_key = k.entity_key)
   AND NOT EXISTS (SELECT FROM sluice_outbox_claims c
                    WHERE c.claim = u.sluice_claim AND c.ends_at > statement_timestamp());
