-- How much waits, and for how long. Ages in microseconds, on the database's clock. A held message
-- with a key is due when its key is, however old it is itself, unless it is delayed: its key does not wait for it.
-- in:  none
-- out: total int8, due int8, leased int8, scheduled int8, held int8, oldest_us int8, dead int8
WITH o AS (
    SELECT julianday(ifnull(s.available_at, s.created_at)) AS sluice_from, s.held AS sluice_held,
           ifnull(s.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now'), 0) AS sluice_leased,
           s.held = 0 OR s.delayed = 1 OR s.entity_key IS NULL
           OR ifnull(julianday(k.due_at) <= julianday('now'), 0) AS sluice_free
      FROM sluice_outbox s
      LEFT JOIN sluice_outbox_keys k ON s.held = 1 AND k.entity_key = s.entity_key
)
SELECT count(*),
       count(*) FILTER (WHERE NOT sluice_leased AND sluice_free AND ifnull(sluice_from <= julianday('now'), 1)),
       count(*) FILTER (WHERE sluice_leased),
       count(*) FILTER (WHERE NOT sluice_leased AND sluice_from > julianday('now')),
       count(*) FILTER (WHERE sluice_held),
       CAST(ifnull(max(0, (julianday('now') - min(sluice_from)) * 86400000.0), 0) AS INTEGER) * 1000,
       (SELECT count(*) FROM sluice_outbox_dead)
  FROM o;
