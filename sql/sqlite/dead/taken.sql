-- Those of these dead letters whose idempotency key a living message has, and which message that is. Read after the
-- lock; a message that comes later still meets the unique index.
-- in:  dead_id int8[]
-- out: dead_id int8, id int8, idempotency_key text
SELECT d.dead_id, o.id, d.idempotency_key
  FROM sluice_outbox_dead d
  JOIN sluice_outbox o ON o.idempotency_key = d.idempotency_key
 WHERE d.dead_id = ?1;
