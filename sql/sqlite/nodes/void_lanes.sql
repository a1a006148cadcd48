-- A node of another strategy than lanes has joined: whoever still has lanes is no node any more, and cannot
-- settle by them. Epoch 0 is nobody's.
-- in:  session int8, strategy text
-- out: none
UPDATE sluice_outbox_lanes SET owner = NULL, epoch = 0
 WHERE epoch <> 0 AND ?2 <> 'lanes' AND EXISTS (SELECT 1 FROM sluice_outbox_nodes n WHERE n.session = ?1);
