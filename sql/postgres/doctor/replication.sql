-- Replication slots, and standbys that tell what they still read (hot_standby_feedback). xids: for how many
-- transactions it has kept dead rows alive; wal_bytes: the log that is kept for it.
-- in:  none
-- out: kind text, name text, active bool, xids int8, wal_bytes int8
SELECT 'slot', s.slot_name::text, s.active, coalesce(age(s.xmin), 0)::bigint,
       coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                                     ELSE pg_current_wal_lsn() END, s.restart_lsn), 0)::bigint
  FROM pg_replication_slots s
 WHERE NOT s.temporary
UNION ALL
SELECT 'standby', coalesce(nullif(r.application_name, ''), r.client_addr::text, ''), true,
       coalesce(age(r.backend_xmin), 0)::bigint, 0
  FROM pg_stat_replication r
 WHERE r.backend_xmin IS NOT NULL
 ORDER BY 4 DESC;
