-- Is this key still our turn's? It stays so until the write transaction ends.
-- in:  claim text[], epoch int8
-- out: claim text
SELECT c.claim FROM sluice_outbox_claims c WHERE c.claim = ?1 AND c.epoch = ?2;
