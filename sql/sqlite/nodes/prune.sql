-- Nodes whose time is over are no nodes any more; each learns it at its next beat.
-- in:  none
-- out: node text
DELETE FROM sluice_outbox_nodes WHERE lives_until <= strftime('%Y-%m-%d %H:%M:%f', 'now') RETURNING node;
