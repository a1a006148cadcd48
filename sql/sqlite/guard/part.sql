-- Let go of a key of a turn.
-- in:  claim text[], epoch int8
-- out: none
DELETE FROM sluice_outbox_claims WHERE claim = ?1 AND epoch = ?2;
