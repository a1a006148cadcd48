-- Are delivered messages kept?
-- in:  none
-- out: any bool
SELECT EXISTS (SELECT FROM sluice_outbox_sent);
