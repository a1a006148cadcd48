-- Known to be sent: out of the list.
-- in:  id int8[]
-- out: none
DELETE FROM sluice_outbox_consumed WHERE id = ?1;
