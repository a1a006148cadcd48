-- Not delivered: held until the delay is over. ordered/block then makes the key wait with it.
-- in:  id int8[], delay_us int8[], reason text[]
-- out: none
UPDATE sluice_outbox o
   SET available_at = clock_timestamp() + u.delay * interval '1 microsecond',
       last_error = u.reason,
       attempts = coalesce(o.attempts, 0) + 1,
       held = true
  FROM unnest($1, $2, $3) AS u (id, delay, reason)
 WHERE o.id = ANY ($1) AND o.id = u.id;
