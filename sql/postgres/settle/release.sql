-- Not tried: give the messages back as if they had never been leased.
-- in:  id int8[], epoch int8[]
-- out: none
UPDATE sluice_outbox o
   SET leased_until = NULL,
       worker = NULL,
       attempts = o.attempts - 1
  FROM unnest($1, $2) AS u (id, epoch)
 WHERE o.id = u.id AND o.epoch = u.epoch;
