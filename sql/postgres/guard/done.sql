-- Let go of the keys.
-- in:  claim text[], epoch int8
-- out: none
DELETE FROM sluice_outbox_claims c WHERE c.claim = ANY ($1) AND c.epoch = $2;
