-- Nothing is to be done.
-- in:  none
-- out: none
DELETE FROM sluice_outbox WHERE 0;
