-- What consumed/orphans has made dead letters of, a moment ago and in the same transaction.
-- in:  none
-- out: none
DELETE FROM sluice_outbox_consumed AS c
 WHERE c.journal IS NULL
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_nodes n
                    WHERE substr(c.worker, 1, length(n.node) + 1) = n.node || '/' AND n.started_at <= c.consumed_at);
