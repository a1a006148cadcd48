-- Messages that are parked alone: due now, as if never tried.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox
   SET available_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), attempts = 0
 WHERE id = ?1 AND available_at = '9999-12-31 23:59:59.999';
