-- Turns of which no key is left.
-- in:  turns int8
-- out: none
DELETE FROM sluice_outbox_claims c WHERE c.epoch >= $1 AND c.keys = '{}';
