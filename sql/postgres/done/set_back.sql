-- Was the sequence of ids set back behind what has been delivered? New messages would never be looked for. Newer servers
-- say NULL to who has no rights on it: that is not 0.
-- in:  none
-- out: set_back bool
SELECT coalesce((SELECT max(p.floor) FROM sluice_outbox_positions p)
                > coalesce(pg_sequence_last_value(to_regclass('sluice_outbox_ids')),
                           CASE WHEN has_sequence_privilege(to_regclass('sluice_outbox_ids'), 'usage, select') THEN 0 END) + 1, false);
