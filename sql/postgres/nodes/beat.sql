-- The heartbeat, once a period: live on, and learn whether anything has changed. A row that is gone
-- was pruned by others: then nothing is returned, and whatever the node owned is no longer its own.
-- `peers` and `last_born` together change with each join and leave; soonest_us: when the first of the
-- others ends if it does not beat; `paused`: no lanes may be owned now.
-- in:  session int8, lease_us int8, sent int8, failed int8, per_second int8
-- out: peers int8, last_born int8, soonest_us int8, lanes int8, paused bool
UPDATE sluice_outbox_nodes me
   SET lives_until = clock_timestamp() + $2 * interval '1 microsecond',
       sent = $3, failed = $4, per_second = $5
 WHERE me.session = $1
RETURNING (SELECT count(*) FROM sluice_outbox_nodes),
          (SELECT max(n.born) FROM sluice_outbox_nodes n),
          coalesce((SELECT (extract(EPOCH FROM min(n.lives_until) - clock_timestamp()) * 1000000)::bigint
                      FROM sluice_outbox_nodes n WHERE n.session <> $1), 9223372036854775807),
          (SELECT m.value::bigint FROM sluice_outbox_meta m WHERE m.name = 'lanes'),
          (SELECT m.value::timestamptz > clock_timestamp() FROM sluice_outbox_meta m WHERE m.name = 'lanes_pause');
