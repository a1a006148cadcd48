-- What answers, and whether it can be written to.
-- in:  none
-- out: version_number int8, version text, standby bool
SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), pg_is_in_recovery();
