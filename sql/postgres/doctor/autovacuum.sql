-- Is it on, has it workers left, and how far is the database from the end of its transaction numbers?
-- in:  none
-- out: enabled bool, counts bool, workers int8, busy int8, xids int8, freeze_at int8
SELECT current_setting('autovacuum')::boolean, current_setting('track_counts')::boolean,
       current_setting('autovacuum_max_workers')::bigint,
       (SELECT count(*) FROM pg_stat_activity a WHERE a.backend_type = 'autovacuum worker'),
       age(d.datfrozenxid)::bigint, current_setting('autovacuum_freeze_max_age')::bigint
  FROM pg_database d
 WHERE d.datname = current_database();
