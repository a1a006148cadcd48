-- Not delivered: come back after a delay. `count` is 1 where the claim did not count the attempt.
-- in:  id int8[], epoch int8[], delay_us int8[], reason text[], count int8
-- out: none
UPDATE sluice_outbox
   SET available_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0)),
       last_error = ?4,
       attempts = ifnull(attempts, 0) + ?5,
       leased_until = NULL,
       worker = NULL
 WHERE id = ?1 AND epoch = ?2;
