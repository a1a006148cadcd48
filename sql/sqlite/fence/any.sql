-- Is there a node that is gone and was not kept out yet?
-- in:  none
-- out: any int8
SELECT 1
  FROM sluice_outbox_fences
 WHERE (busy_until IS NULL OR busy_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
   AND session NOT IN (SELECT n.session FROM sluice_outbox_nodes n)
 LIMIT 1;
