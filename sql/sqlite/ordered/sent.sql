-- Delivered, or buried: the row goes. The claim is ours until the transaction ends.
-- in:  id int8[]
-- out: none
DELETE FROM sluice_outbox WHERE id = ?1;
