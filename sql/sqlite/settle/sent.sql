-- Delivered: the row goes. Only while the claim is still ours.
-- in:  id int8[], epoch int8[]
-- out: none
DELETE FROM sluice_outbox WHERE id = ?1 AND epoch = ?2;
