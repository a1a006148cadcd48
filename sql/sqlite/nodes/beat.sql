-- The heartbeat, once a period: live on, and learn whether anything has changed. A row that is gone
-- was pruned by others: then nothing is returned, and whatever the node owned is no longer its own.
-- `peers` and `last_born` together change with each join and leave; soonest_us: when the first of the
-- others ends if it does not beat; `paused`: no lanes may be owned now.
-- in:  session int8, lease_us int8, sent int8, failed int8, per_second int8
-- out: peers int8, last_born int8, soonest_us int8, lanes int8, paused bool
UPDATE sluice_outbox_nodes
   SET lives_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2 / 1000000.0)),
       sent = ?3, failed = ?4, per_second = ?5
 WHERE session = ?1
RETURNING (SELECT count(*) FROM sluice_outbox_nodes),
          (SELECT max(n.born) FROM sluice_outbox_nodes n),
          ifnull((SELECT CAST((julianday(min(n.lives_until)) - julianday('now')) * 86400000.0 AS INTEGER) * 1000
                    FROM sluice_outbox_nodes n WHERE n.session <> ?1), 9223372036854775807),
          (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'lanes'),
          (SELECT m.value > strftime('%Y-%m-%d %H:%M:%f', 'now') FROM sluice_outbox_meta m WHERE m.name = 'lanes_pause');
