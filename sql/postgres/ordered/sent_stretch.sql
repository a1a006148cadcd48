-- As ordered/sent, where they are nearly all between the first id and the last. They come in order.
-- in:  id int8[]
-- out: none
DELETE FROM sluice_outbox o
 WHERE o.id >= ($1)[1] AND o.id <= ($1)[cardinality($1)] AND CASE WHEN o.id IN (SELECT unnest($1)) THEN true END;
