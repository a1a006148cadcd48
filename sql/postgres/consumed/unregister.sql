-- Before consumed/back: the idempotency keys of these messages are let go of, since inserting registers them again.
-- Another producer of such a key waits for the end of this transaction, and then finds it registered, whatever the end.
-- The lock: as in consumed/bury. An array instead of a join: the keys are looked up, whatever the planner believes.
-- in:  id int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT c.idempotency_key FROM sluice_outbox_consumed c WHERE c.id = ANY ($1) FOR UPDATE OF c
)
DELETE FROM sluice_outbox_idempotency i WHERE i.idempotency_key = ANY (ARRAY(SELECT c.idempotency_key FROM ours c));
