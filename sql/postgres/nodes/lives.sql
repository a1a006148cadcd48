-- Is this node one? Then nobody has taken over from it so far.
-- in:  session int8
-- out: lives int8
SELECT count(*) FROM sluice_outbox_nodes n WHERE n.session = $1;
