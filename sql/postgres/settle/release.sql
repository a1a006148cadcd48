-- Not tried: give the messages back as if they had never been leased.
-- in:  id int8[], epoch int8[]
-- out: none
UPDATE sluice_outbox o
   SET leased_until = NULL,
       worker = NULL,
       attempts = o.attempts - 1
 WHERE o.id = ANY ($1)
   AND CASE WHEN (o.id, o.epoch) IN (SELECT u.id, u.epoch FROM unnest($1, $2) AS u (id, epoch))
            THEN true END;
