-- Are delivered messages kept?
-- in:  none
-- out: any bool
SELECT EXISTS (SELECT 1 FROM sluice_outbox_sent);
