-- Who holds leases now.
-- in:  none
-- out: worker text, messages int8, lease_left_us int8
SELECT o.worker, count(*),
       (extract(EPOCH FROM max(o.leased_until) - clock_timestamp()) * 1000000)::bigint
  FROM sluice_outbox o
 WHERE o.leased_until > clock_timestamp()
 GROUP BY o.worker
 ORDER BY o.worker;
