-- Deletes what is done in a segment that cannot be emptied, at most so many rows.
-- in:  segment int8, most int8
-- out: swept int8
SELECT sluice_outbox_sweep($1::oid::regclass, $2);
