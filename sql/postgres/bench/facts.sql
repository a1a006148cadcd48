-- What the server has counted: bytes of its log, rows of our tables that were made dead; the process of this session, if the
-- server is on this machine.
-- in:  none
-- out: wal int8, dead int8, pid int8, version text
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,
       (SELECT coalesce(sum(s.n_tup_upd + s.n_tup_del), 0)::bigint FROM pg_stat_all_tables s JOIN pg_class c ON c.oid = s.relid
         WHERE c.relnamespace = (SELECT o.relnamespace FROM pg_class o WHERE o.oid = 'sluice_outbox'::regclass)),
       CASE WHEN coalesce(host(inet_server_addr()) IN ('127.0.0.1', '::1'), true) THEN pg_backend_pid()::bigint ELSE 0::bigint END,
       'PostgreSQL ' || current_setting('server_version');
