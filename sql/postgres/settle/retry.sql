-- Not delivered: come back after a delay. `count` is 1 where the claim did not count the attempt.
-- in:  id int8[], epoch int8[], delay_us int8[], reason text[], count int8
-- out: none
UPDATE sluice_outbox o
   SET available_at = clock_timestamp() + u.delay * interval '1 microsecond',
       last_error = u.reason,
       attempts = coalesce(o.attempts, 0) + $5::integer,
       leased_until = NULL,
       worker = NULL
  FROM unnest($1, $2, $3, $4) AS u (id, epoch, delay, reason)
 WHERE o.id = ANY ($1) AND o.id = u.id AND o.epoch = u.epoch;
