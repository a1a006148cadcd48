-- Let go of some keys of a turn. guard/tidy follows.
-- in:  claim text[], epoch int8
-- out: none
UPDATE sluice_outbox_claims c
   SET keys = ARRAY(SELECT k.claim FROM unnest(c.keys) AS k (claim) WHERE k.claim <> ALL ($1))
 WHERE c.epoch = $2;
