-- Who lives, in the order of their birth. Times in microseconds: left until it must have beaten, and age.
-- in:  none
-- out: session int8, node text, strategy text, assign text, workers int8, born int8, left_us int8,
--      age_us int8, sent int8, failed int8, per_second int8
SELECT n.session, n.node, n.strategy, n.assign, n.workers, n.born,
       CAST((julianday(n.lives_until) - julianday('now')) * 86400000.0 AS INTEGER) * 1000,
       CAST((julianday('now') - julianday(n.started_at)) * 86400000.0 AS INTEGER) * 1000,
       n.sent, n.failed, n.per_second
  FROM sluice_outbox_nodes n
 ORDER BY n.born;
