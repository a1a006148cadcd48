-- Behind a message of its key that may not go, or not yet due itself: out of the way of the others.
-- Written once, however long it waits. Held ones are found by their time, so that in a table that was
-- adopted, where it may be NULL, they get one.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox
   SET held = 1, available_at = coalesce(available_at, strftime('%Y-%m-%d %H:%M:%f', 'now'))
 WHERE id = ?1 AND held = 0;
