-- Not tried: give the message back as if it had never been leased.
-- in:  id int8[], epoch int8[]
-- out: none
UPDATE sluice_outbox
   SET leased_until = NULL,
       worker = NULL,
       attempts = attempts - 1
 WHERE id = ?1 AND epoch = ?2;
