-- The first messages of parked keys, if they are parked themselves: due now, as if never tried. keys/resume follows.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox
   SET available_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), attempts = 0
 WHERE id = (SELECT min(m.id)
               FROM sluice_outbox_keys k
               JOIN sluice_outbox m ON m.held = 1 AND m.delayed = 0 AND m.entity_key = k.entity_key
              WHERE k.entity_key = ?1 AND k.due_at = '9999-12-31 23:59:59.999')
   AND available_at = '9999-12-31 23:59:59.999';
