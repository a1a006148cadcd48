-- Was the sequence of ids set back behind what has been delivered? New messages would never be looked for.
-- in:  none
-- out: set_back bool
SELECT coalesce((SELECT max(p.floor) FROM sluice_outbox_positions p)
                > coalesce(pg_sequence_last_value(to_regclass('sluice_outbox_ids')), 0) + 1, false);
