-- One node joins at a time: the write transaction sees to that.
-- in:  none
-- out: none
DELETE FROM sluice_outbox_nodes WHERE 0;
