-- First half of a resend: the idempotency key of this dead letter is let go of, since inserting registers it again.
-- in:  dead_id int8[]
-- out: none
DELETE FROM sluice_outbox_idempotency
 WHERE idempotency_key = (SELECT CAST(d.idempotency_key AS TEXT) FROM sluice_outbox_dead d WHERE d.dead_id = ?1);
