-- The first messages of parked keys, if they are parked themselves: due now, as if never tried. keys/resume follows.
-- in:  key text[]
-- out: none
UPDATE sluice_outbox o
   SET available_at = clock_timestamp(), attempts = 0
 WHERE o.id = ANY (ARRAY(SELECT (SELECT m.id FROM sluice_outbox m
                                  WHERE m.held AND NOT m.delayed AND m.entity_key = k.entity_key ORDER BY m.id LIMIT 1)
                           FROM sluice_outbox_keys k
                          WHERE k.entity_key = ANY ($1) AND CASE WHEN k.due_at = 'infinity' THEN true END))
   AND CASE WHEN o.available_at = 'infinity' THEN true END;
