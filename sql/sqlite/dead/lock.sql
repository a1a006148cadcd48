-- First of a transaction that takes dead letters away: is it still there? The transaction is the only writer.
-- in:  dead_id int8[]
-- out: dead_id int8
SELECT d.dead_id
  FROM sluice_outbox_dead d
 WHERE d.dead_id = ?1;
