-- How much waits, and for how long. Ages in microseconds, on the database's clock.
-- in:  none
-- out: total int8, due int8, leased int8, scheduled int8, oldest_us int8, dead int8
WITH o AS (
    SELECT julianday(ifnull(s.available_at, s.created_at)) AS from_day,
           ifnull(s.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now'), 0) AS held
      FROM sluice_outbox s
)
SELECT count(*),
       count(*) FILTER (WHERE NOT held AND ifnull(from_day <= julianday('now'), 1)),
       count(*) FILTER (WHERE held),
       count(*) FILTER (WHERE NOT held AND from_day > julianday('now')),
       CAST(ifnull(max(0, (julianday('now') - min(from_day)) * 86400000.0), 0) AS INTEGER) * 1000,
       (SELECT count(*) FROM sluice_outbox_dead)
  FROM o;
