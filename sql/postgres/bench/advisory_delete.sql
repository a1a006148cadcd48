-- Delivered: the rows go. The locks of their keys are the claim.
-- in:  id int8[]
-- out: none
DELETE FROM sluice_outbox o WHERE o.id = ANY ($1);
