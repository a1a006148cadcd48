-- Of the thousand messages with the lowest ids that are not put aside: the one that has been due for longest and
-- that nobody leases. What a strategy without leases of messages has in flight is among them, for a moment.
-- in:  none
-- out: id int8, topic text, age_us int8
SELECT o.id, coalesce(o.topic, ''),
       (extract(EPOCH FROM clock_timestamp() - coalesce(o.available_at, o.created_at)) * 1000000)::bigint
  FROM (SELECT s.id, s.topic, s.available_at, s.created_at, s.leased_until
          FROM sluice_outbox s
         WHERE NOT s.held AND s.id >= (SELECT coalesce(min(p.floor), 0) FROM sluice_outbox_positions p)
           AND s.id >= coalesce((SELECT p.floor FROM sluice_outbox_positions p WHERE p.lane = s.lane), 0)
         ORDER BY s.id
         LIMIT 1000) o
 WHERE coalesce(o.available_at, o.created_at) <= clock_timestamp()
   AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp())
 ORDER BY coalesce(o.available_at, o.created_at)
 LIMIT 1;
