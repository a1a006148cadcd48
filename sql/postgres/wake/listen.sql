-- Notifications reach this session from now on.
-- in:  none
-- out: none
LISTEN sluice_outbox_tr_wake;
