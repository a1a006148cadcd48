-- The message, until the transaction ends; none, if it is gone or another has it.
-- in:  id int8
-- out: id int8, parked bool
SELECT o.id, coalesce(o.available_at = 'infinity', false)
  FROM sluice_outbox o
 WHERE o.id = $1
   FOR UPDATE SKIP LOCKED;
