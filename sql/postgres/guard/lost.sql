-- Which of these messages are there, and have keys that are not this turn's any more?
-- in:  id int8[], epoch int8
-- out: id int8
SELECT o.id
  FROM sluice_outbox o
 WHERE o.id = ANY ($1)
   AND CASE WHEN coalesce('k' || o.entity_key, 'i' || o.id)
                 IN (SELECT k.claim FROM sluice_outbox_claims c CROSS JOIN unnest(c.keys) AS k (claim)
                      WHERE c.epoch = $2) THEN false ELSE true END;
