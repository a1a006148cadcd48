-- Nodes whose time is over are no nodes any more. Their heartbeat and this lock the same row: either
-- it beats and stays, or it is gone and learns that at its next beat.
-- in:  none
-- out: node text
DELETE FROM sluice_outbox_nodes n WHERE n.lives_until <= clock_timestamp() RETURNING n.node;
