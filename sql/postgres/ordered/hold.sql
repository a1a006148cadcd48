-- Behind a message of their key that may not go, or not yet due themselves: out of the way of the
-- others. Written once for each, however long it waits. Held ones are found by their time, so that
-- in a table that was adopted, where it may be NULL, they get one.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox o
   SET held = true, available_at = coalesce(o.available_at, clock_timestamp())
 WHERE o.id = ANY ($1) AND CASE WHEN o.held THEN false ELSE true END;
