-- As if it were new.
-- in:  none
-- out: none
DELETE FROM sluice_outbox;
