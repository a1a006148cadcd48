-- Not yet due and never tried: held until its time comes, while its key goes on. One without a time would not be
-- found by it.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox
   SET held = 1, delayed = 1
 WHERE id = ?1 AND julianday(available_at) IS NOT NULL;
