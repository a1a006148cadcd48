-- Not delivered: come back after a delay, or when an operator says so. `count` is 1 where the attempt was not counted
-- before.
-- in:  id int8[], epoch int8[], delay_us int8[], reason text[], count int8[]
-- out: none
UPDATE sluice_outbox
   SET available_at = CASE WHEN ?3 < 9223372036854775
                           THEN strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0))
                           ELSE '9999-12-31 23:59:59.999' END,
       last_error = ?4,
       attempts = ifnull(attempts, 0) + ?5,
       leased_until = NULL,
       worker = NULL
 WHERE id = ?1 AND epoch = ?2;
