-- Not delivered: held until the delay is over, or for ever. ordered/block then makes the key wait with it.
-- `count` is 0 where the attempt was counted before, or where there was none.
-- in:  id int8[], delay_us int8[], reason text[], count int8[]
-- out: none
UPDATE sluice_outbox
   SET available_at = CASE WHEN ?2 < 9223372036854775
                           THEN strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2 / 1000000.0))
                           ELSE '9999-12-31 23:59:59.999' END,
       last_error = ?3,
       attempts = ifnull(attempts, 0) + ?4,
       held = 1, delayed = 0
 WHERE id = ?1;
