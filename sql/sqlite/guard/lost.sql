-- Is this message there, and has a key that is not this turn's any more?
-- in:  id int8[], epoch int8
-- out: id int8
SELECT o.id
  FROM sluice_outbox o
 WHERE o.id = ?1
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c
                    WHERE c.claim = ifnull('k' || o.entity_key, 'i' || o.id) AND c.epoch = ?2);
