-- With skip-locked: the rows that are still ours, until the transaction ends.
-- in:  id int8[], epoch int8[]
-- out: id int8
SELECT o.id
  FROM sluice_outbox o
  JOIN unnest($1, $2) AS u (id, epoch) ON o.id = u.id AND o.epoch = u.epoch
 WHERE o.id = ANY ($1)
   FOR UPDATE OF o;
