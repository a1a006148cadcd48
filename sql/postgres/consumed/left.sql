-- Not known to be sent, or not delivered: it stays in the list, with the reason, for the operator.
-- in:  id int8[], reason text[]
-- out: none
UPDATE sluice_outbox_consumed c SET last_error = u.reason
  FROM unnest($1, $2) AS u (id, reason)
 WHERE c.id = ANY ($1) AND c.id = u.id;
