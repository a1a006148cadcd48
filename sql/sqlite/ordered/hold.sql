-- Behind a message of its key that may not go, or not yet due itself: out of the way of the others.
-- Written once, however long it waits.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox SET held = 1 WHERE id = ?1 AND held = 0;
