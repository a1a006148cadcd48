-- How much waits, and for how long. Ages in microseconds, on the database's clock. A held message
-- with a key is due when its key is, however old it is itself, unless it is delayed: its key does not wait for it.
-- What is done and stays, below the position of its lane, does not wait.
-- in:  none
-- out: total int8, due int8, leased int8, scheduled int8, held int8, oldest_us int8, dead int8
WITH o AS (
    SELECT s.available_at AS sluice_from, s.held AS sluice_held,
           coalesce(s.leased_until > clock_timestamp(), false) AS sluice_leased,
           (NOT s.held OR s.delayed OR s.entity_key IS NULL OR k.due_at <= clock_timestamp()) AS sluice_free,
           clock_timestamp() AS sluice_now
      FROM sluice_outbox s
      LEFT JOIN sluice_outbox_keys k ON s.held AND k.entity_key = s.entity_key
      LEFT JOIN sluice_outbox_positions p ON p.lane = s.lane
     WHERE s.held OR p.floor IS NULL OR s.id >= p.floor
)
SELECT count(*),
       count(*) FILTER (WHERE NOT o.sluice_leased AND o.sluice_free AND (o.sluice_from > o.sluice_now) IS NOT TRUE),
       count(*) FILTER (WHERE o.sluice_leased),
       count(*) FILTER (WHERE NOT o.sluice_leased AND o.sluice_from > o.sluice_now),
       count(*) FILTER (WHERE o.sluice_held),
       coalesce((extract(EPOCH FROM clock_timestamp()
                         - min(o.sluice_from) FILTER (WHERE o.sluice_from <= o.sluice_now)) * 1000000)::bigint, 0),
       (SELECT count(*) FROM sluice_outbox_dead)
  FROM o;
