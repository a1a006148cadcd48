-- How many consumed/orphans would find.
-- in:  none
-- out: orphans int8
SELECT count(*)
  FROM sluice_outbox_consumed c
 WHERE c.journal IS NULL
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_nodes n
                    WHERE n.node || '/' = rtrim(c.worker, '0123456789') AND n.started_at <= c.consumed_at
                      AND n.lives_until > strftime('%Y-%m-%d %H:%M:%f', 'now'));
