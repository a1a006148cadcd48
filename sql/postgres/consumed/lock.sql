-- With skip-locked: the rows that are still ours, until the transaction ends.
-- They are looked up as in ordered/keep.
-- in:  id int8[], epoch int8[]
-- out: id int8
SELECT o.id
  FROM unnest($1, $2) AS u (id, epoch)
 CROSS JOIN LATERAL (SELECT m.* FROM sluice_outbox m WHERE m.id = u.id AND m.epoch = u.epoch OFFSET 0 FOR UPDATE) o;
