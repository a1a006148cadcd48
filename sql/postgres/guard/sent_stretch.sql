-- As guard/sent, where they are nearly all between the first id and the last. `which` is as in lanes/sent_stretch.
-- in:  which bytea, first int8, epoch int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT k.claim
      FROM (SELECT c.keys FROM sluice_outbox_claims c WHERE c.epoch = ($3)[1] FOR UPDATE) t
     CROSS JOIN unnest(t.keys) AS k (claim)
)
DELETE FROM sluice_outbox o
 WHERE o.id >= $2 AND o.id <= $2 + (octet_length($1) - 1)
   AND CASE WHEN o.id - $2 BETWEEN 0 AND octet_length($1) - 1
            THEN get_byte($1, (o.id - $2)::int) = 1
             AND coalesce('k' || o.entity_key, 'i' || o.id) IN (SELECT s.claim FROM ours s) END;
