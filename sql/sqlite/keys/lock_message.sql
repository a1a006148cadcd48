-- The message, until the transaction ends; none, if it is gone or another has it.
-- in:  id int8
-- out: id int8, parked bool
SELECT o.id, ifnull(o.available_at = '9999-12-31 23:59:59.999', 0) FROM sluice_outbox o WHERE o.id = ?1;
