-- How large the tables are and what lives in them, as the server's statistics have it: no row is read.
-- row_bytes: the columns of a row on average, 0 if that was never looked at.
-- in:  none
-- out: tbl text, live int8, dead int8, heap_bytes int8, index_bytes int8, indexes int8, row_bytes int8, fill int8,
--      enabled bool, vacuumed bool
SELECT c.oid::regclass::text, greatest(s.n_live_tup, c.reltuples::bigint, 0), s.n_dead_tup,
       pg_relation_size(c.oid), pg_indexes_size(c.oid),
       (SELECT count(*) FROM pg_index i WHERE i.indrelid = c.oid),
       coalesce((SELECT sum(w.avg_width) FROM pg_stats w WHERE w.schemaname = n.nspname AND w.tablename = c.relname),
                0)::bigint,
       coalesce((SELECT o.option_value FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'fillfactor'),
                '100')::bigint,
       coalesce((SELECT o.option_value FROM pg_options_to_table(c.reloptions) o
                  WHERE o.option_name = 'autovacuum_enabled'), 'true')::boolean,
       s.last_vacuum IS NOT NULL OR s.last_autovacuum IS NOT NULL
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_stat_all_tables s ON s.relid = c.oid
 WHERE c.oid IN (to_regclass('sluice_outbox'), to_regclass('sluice_outbox_dead'), to_regclass('sluice_outbox_sent'),
                 to_regclass('sluice_outbox_keys'), to_regclass('sluice_outbox_claims'), to_regclass('sluice_outbox_nodes'),
                 to_regclass('sluice_outbox_lanes'), to_regclass('sluice_outbox_meta'),
                 to_regclass('sluice_outbox_idempotency'), to_regclass('sluice_outbox_consumed'),
                 to_regclass('sluice_outbox_fences'), to_regclass('sluice_outbox_done'))
    OR c.oid IN (SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = to_regclass('sluice_outbox'))
 ORDER BY c.relname;
