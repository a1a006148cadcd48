-- Open transactions in this database, the oldest first. pins: it has a snapshot or writes, and so keeps dead
-- rows alive. hidden: of another role, whose transactions this one may not see. A VACUUM keeps nothing alive.
-- in:  none
-- out: pid int8, app text, usr text, state text, age_us int8, pins bool, hidden bool
SELECT a.pid::bigint, coalesce(a.application_name, ''), coalesce(a.usename::text, ''), coalesce(a.state, ''),
       coalesce(extract(EPOCH FROM clock_timestamp() - a.xact_start) * 1000000, 0)::bigint,
       a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL,
       NOT (pg_has_role('pg_read_all_stats', 'usage') OR pg_has_role(a.usesysid, 'usage'))
  FROM pg_stat_activity a
 WHERE a.datname = current_database() AND a.usesysid IS NOT NULL AND a.pid <> pg_backend_pid()
   AND (a.xact_start IS NOT NULL
        OR NOT (pg_has_role('pg_read_all_stats', 'usage') OR pg_has_role(a.usesysid, 'usage')))
   AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)
 ORDER BY a.xact_start;
