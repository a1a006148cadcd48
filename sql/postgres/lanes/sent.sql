-- Delivered: the rows go, with the statement that checks the epoch of every lane. An epoch is given
-- out once, so it names lane and owner.
-- in:  id int8[], epoch int8[]
-- out: none
DELETE FROM sluice_outbox o
 WHERE o.id = ANY ($1)
   AND CASE WHEN o.lane IN (SELECT l.lane FROM sluice_outbox_lanes l WHERE l.epoch = ANY ($2)) THEN true END;
