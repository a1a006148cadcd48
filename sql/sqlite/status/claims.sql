-- Who holds keys now, by strategy guard. Who holds lanes is in lanes/list.
-- in:  none
-- out: worker text, keys int8, lease_left_us int8
SELECT c.held_by, count(*),
       CAST((julianday(max(c.ends_at)) - julianday('now')) * 86400000.0 AS INTEGER) * 1000
  FROM sluice_outbox_claims c
 WHERE c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now')
 GROUP BY c.held_by
 ORDER BY c.held_by;
