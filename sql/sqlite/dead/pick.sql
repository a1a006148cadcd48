-- The same of these dead letters.
-- in:  dead_id int8[]
-- out: dead_id int8, id int8, bytes int8, unknown bool
SELECT d.dead_id, d.id, ifnull(length(d.payload), 0), d.unknown
  FROM sluice_outbox_dead d
 WHERE d.dead_id = ?1;
