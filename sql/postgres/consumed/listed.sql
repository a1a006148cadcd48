-- consumed/orphans has taken them out of the list itself.
-- in:  none
-- out: none
DELETE FROM sluice_outbox_consumed c WHERE c.id < 0 AND c.id > 0;
