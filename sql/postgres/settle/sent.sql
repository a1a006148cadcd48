-- Delivered: the row goes. Only while the claim is still ours.
-- in:  id int8[], epoch int8[]
-- out: none
DELETE FROM sluice_outbox o
 USING unnest($1, $2) AS u (id, epoch)
 WHERE o.id = u.id AND o.epoch = u.epoch;
