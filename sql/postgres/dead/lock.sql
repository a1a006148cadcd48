-- First of a transaction that takes dead letters away: those of them that are still there, locked. Always in the
-- order of their old ids, and waiting: so two operators cannot wait for each other, and who comes to the later
-- messages of a key has seen the end of those who had the earlier ones.
-- in:  dead_id int8[]
-- out: dead_id int8
SELECT d.dead_id
  FROM sluice_outbox_dead d
 WHERE d.dead_id = ANY ($1)
 ORDER BY d.id, d.dead_id
   FOR UPDATE;
