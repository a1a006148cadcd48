-- Ids up to this have been given out, where the table gives them out itself (layout rotated).
-- in:  last int8
-- out: given int8
SELECT coalesce(setval(to_regclass('sluice_outbox_ids'), $1), 0);
