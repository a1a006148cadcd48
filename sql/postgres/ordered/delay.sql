-- Not yet due and never tried: held until their time comes, while their keys go on. One without a time would not be
-- found by it.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox o
   SET held = true, delayed = true
 WHERE o.id = ANY ($1) AND o.available_at IS NOT NULL;
