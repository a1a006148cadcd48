-- Delivered: the row goes, with the statement that checks the epoch of its lane.
-- in:  id int8[], epoch int8[], lane int8[]
-- out: none
DELETE FROM sluice_outbox
 WHERE id = ?1 AND lane = ?3 AND ?2 = (SELECT l.epoch FROM sluice_outbox_lanes l WHERE l.lane = ?3);
