-- First half of a resend: the idempotency keys of these dead letters are let go of, since inserting registers them again.
-- Another producer of such a key waits for the end of this transaction, and then finds it registered, whatever the end.
-- in:  dead_id int8[]
-- out: none
DELETE FROM sluice_outbox_idempotency i
 USING sluice_outbox_dead d
 WHERE d.dead_id = ANY ($1) AND i.idempotency_key = d.idempotency_key;
