-- Who holds keys now, by strategy guard. Who holds lanes is in lanes/list.
-- in:  none
-- out: worker text, keys int8, lease_left_us int8
SELECT c.held_by, sum(cardinality(c.keys))::bigint,
       (extract(EPOCH FROM max(c.ends_at) - clock_timestamp()) * 1000000)::bigint
  FROM sluice_outbox_claims c
 WHERE c.ends_at > clock_timestamp()
 GROUP BY c.held_by
 ORDER BY c.held_by;
