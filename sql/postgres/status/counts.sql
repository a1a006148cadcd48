-- How much waits, and for how long. Ages in microseconds, on the database's clock.
-- in:  none
-- out: total int8, due int8, leased int8, scheduled int8, oldest_us int8, dead int8
WITH o AS (
    SELECT s.available_at, s.leased_until, clock_timestamp() AS t FROM sluice_outbox s
)
SELECT count(*),
       count(*) FILTER (WHERE o.available_at <= o.t AND (o.leased_until IS NULL OR o.leased_until <= o.t)),
       count(*) FILTER (WHERE o.leased_until > o.t),
       count(*) FILTER (WHERE o.available_at > o.t AND (o.leased_until IS NULL OR o.leased_until <= o.t)),
       coalesce((extract(EPOCH FROM clock_timestamp() - min(o.available_at) FILTER (WHERE o.available_at <= o.t))
                 * 1000000)::bigint, 0),
       (SELECT count(*) FROM sluice_outbox_dead)
  FROM o;
