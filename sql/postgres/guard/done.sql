-- The turn is over: let go of all its keys.
-- in:  epoch int8
-- out: none
DELETE FROM sluice_outbox_claims c WHERE c.epoch = $1;
