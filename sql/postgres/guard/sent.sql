-- Delivered: the rows go, with the statement that checks the epoch of every key. All messages of a
-- turn have the same epoch.
-- in:  id int8[], epoch int8[]
-- out: none
DELETE FROM sluice_outbox o
 WHERE o.id = ANY ($1)
   AND CASE WHEN EXISTS (SELECT FROM sluice_outbox_claims c
                          WHERE c.claim = coalesce('k' || o.entity_key, 'i' || o.id) AND c.epoch = ($2)[1])
            THEN true END;
