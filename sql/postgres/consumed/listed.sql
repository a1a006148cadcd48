-- consumed/orphans has taken them out of the list itself.
-- in:  worker text
-- out: none
DELETE FROM sluice_outbox_consumed c WHERE c.worker = $1::text AND c.id < 0 AND c.id > 0;
