-- Not delivered: come back after a delay, or when an operator says so. `count` is 1 where the attempt was not counted
-- before.
-- in:  id int8[], epoch int8[], delay_us int8[], reason text[], count int8[]
-- out: none
UPDATE sluice_outbox o
   SET available_at = CASE WHEN u.delay < 9223372036854775 THEN clock_timestamp() + u.delay * interval '1 microsecond'
                           ELSE 'infinity' END,
       last_error = u.reason,
       attempts = coalesce(o.attempts, 0) + u.count,
       leased_until = NULL,
       worker = NULL
  FROM unnest($1, $2, $3, $4, $5) AS u (id, epoch, delay, reason, count)
 WHERE o.id = ANY ($1) AND o.id = u.id AND o.epoch = u.epoch;
