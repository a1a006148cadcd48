-- How many sessions there may be and are: on the server, and in this database (-1: no limit of its own).
-- in:  none
-- out: most int8, reserved int8, used int8, db_most int8, db_used int8
SELECT current_setting('max_connections')::bigint,
       current_setting('superuser_reserved_connections')::bigint
       + coalesce(current_setting('reserved_connections', true), '0')::bigint,
       (SELECT sum(s.numbackends) FROM pg_stat_database s)::bigint,
       d.datconnlimit::bigint, coalesce(pg_stat_get_db_numbackends(d.oid), 0)::bigint
  FROM pg_database d
 WHERE d.datname = current_database();
