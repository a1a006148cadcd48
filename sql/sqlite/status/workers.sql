-- Who holds leases now.
-- in:  none
-- out: worker text, messages int8, lease_left_us int8
SELECT o.worker, count(*),
       CAST((julianday(max(o.leased_until)) - julianday('now')) * 86400000.0 AS INTEGER) * 1000
  FROM sluice_outbox o
 WHERE o.leased_until > strftime('%Y-%m-%d %H:%M:%f', 'now')
 GROUP BY o.worker
 ORDER BY o.worker;
