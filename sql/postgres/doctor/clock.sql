-- The database's clock, in microseconds since 1970.
-- in:  none
-- out: now_us int8
SELECT (extract(EPOCH FROM clock_timestamp()) * 1000000)::bigint;
