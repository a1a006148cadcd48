-- Before consumed/back: the idempotency key of this message is let go of, since inserting registers it again.
-- in:  id int8[]
-- out: none
DELETE FROM sluice_outbox_idempotency
 WHERE idempotency_key = (SELECT CAST(c.idempotency_key AS TEXT) FROM sluice_outbox_consumed c WHERE c.id = ?1);
