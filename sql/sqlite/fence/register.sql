-- Where a node is about to send under names of its own: one row for each such place. It outlives the node's own row: whoever
-- takes over from a node that did not take its rows along has to see to it first that nothing more of it gets in there.
-- in:  session int8, node text, workers int8, way int8[], place text[]
-- out: none
INSERT INTO sluice_outbox_fences (session, way, node, workers, place)
SELECT n.session, ?4, ?2, ?3, ?5 FROM sluice_outbox_nodes n WHERE n.session = ?1;
