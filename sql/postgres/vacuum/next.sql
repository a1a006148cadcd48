-- After how many more dead rows the next vacuum of the outbox is worth its while: half of those that live, and as many as
-- this one had to leave, since someone may still see them.
-- in:  none
-- out: rows int8
SELECT pg_stat_get_live_tuples('sluice_outbox'::regclass) / 2 + pg_stat_get_dead_tuples('sluice_outbox'::regclass);
