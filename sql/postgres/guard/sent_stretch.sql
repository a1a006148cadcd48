-- As guard/sent, where they are nearly all between the first id and the last. They come in order.
-- in:  id int8[], epoch int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT k.claim
      FROM (SELECT c.keys FROM sluice_outbox_claims c WHERE c.epoch = ($2)[1] FOR UPDATE) t
     CROSS JOIN unnest(t.keys) AS k (claim)
)
DELETE FROM sluice_outbox o
 WHERE o.id >= ($1)[1] AND o.id <= ($1)[cardinality($1)]
   AND CASE WHEN o.id IN (SELECT unnest($1))
             AND coalesce('k' || o.entity_key, 'i' || o.id) IN (SELECT s.claim FROM ours s) THEN true END;
