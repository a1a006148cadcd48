-- How many keys wait, and the one that has waited longest; parked: until an operator says otherwise.
-- in:  none
-- out: keys int8, key text, head int8, reason text, age_us int8, parked bool
SELECT (SELECT count(*) FROM sluice_outbox_keys), k.entity_key, k.head, ifnull(k.reason, ''),
       CAST((julianday('now') - julianday(k.since)) * 86400000.0 AS INTEGER) * 1000,
       k.due_at > '9000'
  FROM sluice_outbox_keys k
 ORDER BY k.since
 LIMIT 1;
