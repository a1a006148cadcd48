-- Behind a message of their key that may not go, or not yet due themselves: out of the way of the
-- others. Written once for each, however long it waits.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox o SET held = true WHERE o.id = ANY ($1) AND NOT o.held;
