-- Messages that are parked alone: due now, as if never tried.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox o
   SET available_at = clock_timestamp(), attempts = 0
 WHERE o.id = ANY ($1) AND CASE WHEN o.available_at = 'infinity' THEN true END;
