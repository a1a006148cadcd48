-- They are gone: resent, or dropped.
-- in:  dead_id int8[]
-- out: none
DELETE FROM sluice_outbox_dead WHERE dead_id = ?1;
