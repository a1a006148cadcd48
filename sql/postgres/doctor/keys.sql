-- How many keys wait, and the one that has waited longest; parked: until an operator says otherwise.
-- in:  none
-- out: keys int8, key text, head int8, reason text, age_us int8, parked bool
SELECT (SELECT count(*) FROM sluice_outbox_keys), k.entity_key, k.head, coalesce(k.reason, ''),
       (extract(EPOCH FROM clock_timestamp() - k.since) * 1000000)::bigint, k.due_at = 'infinity'
  FROM sluice_outbox_keys k
 ORDER BY k.since
 LIMIT 1;
