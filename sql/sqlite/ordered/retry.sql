-- Not delivered: held until the delay is over. ordered/block then makes the key wait with it.
-- in:  id int8[], delay_us int8[], reason text[]
-- out: none
UPDATE sluice_outbox
   SET available_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2 / 1000000.0)),
       last_error = ?3,
       attempts = ifnull(attempts, 0) + 1,
       held = 1
 WHERE id = ?1;
