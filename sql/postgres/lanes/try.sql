-- Lock those of these lanes that nobody has locked, before it is asked whether they are free: only a later
-- statement sees what a rival committed before it let go of the lock. A lane that is being settled at this
-- moment is not waited for: the heartbeat must not be held up by whoever stands still.
-- in:  lane int8[]
-- out: lane int8
SELECT l.lane::bigint FROM sluice_outbox_lanes l WHERE l.lane = ANY ($1) ORDER BY l.lane FOR UPDATE SKIP LOCKED;
