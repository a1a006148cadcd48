-- Which of these keys are still our turn's? They stay so until the transaction ends: who wants to take
-- them over waits for this lock.
-- in:  claim text[], epoch int8
-- out: claim text
SELECT k.claim
  FROM (SELECT c.keys FROM sluice_outbox_claims c WHERE c.epoch = $2 FOR UPDATE) t
 CROSS JOIN unnest(t.keys) AS k (claim)
 WHERE k.claim = ANY ($1);
