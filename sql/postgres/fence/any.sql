-- Is there a node that is gone and was not kept out yet?
-- in:  none
-- out: any int8
SELECT 1::bigint
  FROM sluice_outbox_fences f
 WHERE (f.busy_until IS NULL OR f.busy_until <= clock_timestamp())
   AND NOT EXISTS (SELECT FROM sluice_outbox_nodes n WHERE n.session = f.session)
 LIMIT 1;
