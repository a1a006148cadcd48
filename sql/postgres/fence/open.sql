-- Nodes that are gone and were not kept out yet, whether or not someone is at it. Asked after lanes/acquire, in the same
-- transaction: who is gone by then was so before, or nothing was taken over from it.
-- in:  none
-- out: session int8
SELECT f.session
  FROM sluice_outbox_fences f
 WHERE NOT EXISTS (SELECT FROM sluice_outbox_nodes n WHERE n.session = f.session)
 LIMIT 1;
