-- Delivered, or buried: the rows go. The claim is ours until the transaction ends.
-- in:  id int8[]
-- out: none
DELETE FROM sluice_outbox o WHERE o.id = ANY ($1);
