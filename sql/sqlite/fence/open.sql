-- Nodes that are gone and were not kept out yet, whether or not someone is at it. Asked after lanes/acquire, in the same
-- transaction: who is gone by then was so before, or nothing was taken over from it.
-- in:  none
-- out: session int8
SELECT session FROM sluice_outbox_fences
 WHERE session NOT IN (SELECT n.session FROM sluice_outbox_nodes n)
 LIMIT 1;
