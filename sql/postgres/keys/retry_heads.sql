-- The first messages of blocked keys, if they have failed: due now, whatever the delay was. One that its producer has
-- scheduled keeps its time. keys/retry follows.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox o
   SET available_at = clock_timestamp()
 WHERE o.id = ANY (ARRAY(SELECT (SELECT m.id FROM sluice_outbox m
                                  WHERE m.held AND NOT m.delayed AND m.entity_key = k.entity_key ORDER BY m.id LIMIT 1)
                           FROM sluice_outbox_keys k
                          WHERE k.entity_key = ANY ($1) AND CASE WHEN k.due_at < 'infinity' THEN true END))
   AND CASE WHEN o.attempts > 0 AND o.available_at > clock_timestamp() AND o.available_at < 'infinity' THEN true END;
