-- Not known to be sent, or not delivered: it stays in the list, with the reason, for the operator.
-- in:  id int8[], reason text[]
-- out: none
UPDATE sluice_outbox_consumed SET last_error = ?2 WHERE id = ?1;
