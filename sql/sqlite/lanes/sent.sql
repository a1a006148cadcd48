-- Delivered: the row goes, with the statement that checks the epoch of its lane. Its lane is that which it was read
-- with: were it asked again, it would be computed again, which costs as much as the deletion. It changes only when the
-- number of lanes does, and then no epoch from before is any lane's (schema/relane_fill).
-- in:  id int8[], epoch int8[], lane int8[]
-- out: none
DELETE FROM sluice_outbox
 WHERE id = ?1 AND ?2 = (SELECT l.epoch FROM sluice_outbox_lanes l WHERE l.lane = ?3);
