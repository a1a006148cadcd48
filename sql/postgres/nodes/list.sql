-- Who lives, in the order of their birth. Times in microseconds: left until it must have beaten, and age.
-- in:  none
-- out: session int8, node text, strategy text, assign text, workers int8, born int8, left_us int8,
--      age_us int8, sent int8, failed int8, per_second int8
SELECT n.session, n.node, n.strategy, n.assign, n.workers::bigint, n.born,
       (extract(EPOCH FROM n.lives_until - clock_timestamp()) * 1000000)::bigint,
       (extract(EPOCH FROM clock_timestamp() - n.started_at) * 1000000)::bigint,
       n.sent, n.failed, n.per_second
  FROM sluice_outbox_nodes n
 ORDER BY n.born;
