-- Of the thousand messages with the lowest ids that are not put aside: the one that has been due for longest and
-- that nobody leases. What a strategy without leases of messages has in flight is among them, for a moment.
-- in:  none
-- out: id int8, topic text, age_us int8
SELECT o.id, ifnull(o.topic, ''),
       CAST((julianday('now') - julianday(ifnull(o.available_at, o.created_at))) * 86400000.0 AS INTEGER) * 1000
  FROM (SELECT s.id, s.topic, s.available_at, s.created_at, s.leased_until
          FROM sluice_outbox s
         WHERE s.held = 0
         ORDER BY s.id
         LIMIT 1000) o
 WHERE julianday(ifnull(o.available_at, o.created_at)) <= julianday('now')
   AND (o.leased_until IS NULL OR o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
 ORDER BY julianday(ifnull(o.available_at, o.created_at))
 LIMIT 1;
