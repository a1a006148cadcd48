-- The first messages of blocked keys, if they have failed: due now, whatever the delay was. One that its producer has
-- scheduled keeps its time. keys/retry follows.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox
   SET available_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
 WHERE id = (SELECT min(m.id)
               FROM sluice_outbox_keys k
               JOIN sluice_outbox m ON m.held = 1 AND m.delayed = 0 AND m.entity_key = k.entity_key
              WHERE k.entity_key = ?1 AND k.due_at < '9999-12-31 23:59:59.999')
   AND attempts > 0 AND julianday(available_at) > julianday('now') AND available_at < '9999-12-31 23:59:59.999';
