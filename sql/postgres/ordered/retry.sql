-- Not delivered: held until the delay is over, or for ever. ordered/block then makes the key wait with it.
-- `count` is 0 where the attempt was counted before, or where there was none.
-- in:  id int8[], delay_us int8[], reason text[], count int8[]
-- out: none
UPDATE sluice_outbox o
   SET available_at = CASE WHEN u.delay < 9223372036854775 THEN clock_timestamp() + u.delay * interval '1 microsecond'
                           ELSE 'infinity' END,
       last_error = u.reason,
       attempts = coalesce(o.attempts, 0) + u.count,
       held = true, delayed = false
  FROM unnest($1, $2, $3, $4) AS u (id, delay, reason, count)
 WHERE o.id = ANY ($1) AND o.id = u.id;
