-- Which of these leases are still ours? They stay so until the transaction ends.
-- in:  claim text[], epoch int8
-- out: claim text
SELECT c.claim FROM sluice_outbox_claims c
 WHERE c.claim = ANY ($1) AND c.epoch = $2
 ORDER BY c.claim
   FOR UPDATE;
