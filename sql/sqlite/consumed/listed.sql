-- What consumed/orphans has made dead letters of, a moment ago and in the same transaction.
-- in:  worker text
-- out: none
DELETE FROM sluice_outbox_consumed AS c
 WHERE c.journal IS NULL
   AND (c.worker = ?1
        OR NOT EXISTS (SELECT 1 FROM sluice_outbox_nodes n
                        WHERE n.node || '/' = rtrim(c.worker, '0123456789') AND n.started_at <= c.consumed_at));
