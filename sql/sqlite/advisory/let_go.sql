-- What advisory/keep has kept, unless another has taken it over.
-- in:  claim text[], epoch int8
-- out: none
DELETE FROM sluice_outbox_claims WHERE claim = ?1 AND epoch = ?2;
