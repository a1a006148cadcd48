-- The last id that was given out, of a table that gives out its ids itself (schema/rotated). To be asked before floor/writers:
-- whoever has one of these and has not committed yet is then among the writers.
-- in:  none
-- out: given int8
SELECT coalesce(pg_sequence_last_value(to_regclass('sluice_outbox_ids')), 0);
