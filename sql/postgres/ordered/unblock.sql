-- A key without held messages waits for nothing any more, unless it is parked. The collation: as in lanes/due.
-- in:  entity_key text[]
-- out: none
DELETE FROM sluice_outbox_keys k
 WHERE k.entity_key = ANY ($1)
   AND CASE WHEN k.due_at < 'infinity' THEN true END
   AND CASE WHEN (SELECT true
                    FROM (SELECT k.entity_key COLLATE "default" AS entity_key) n, sluice_outbox o
                   WHERE o.held AND NOT o.delayed AND o.entity_key = n.entity_key LIMIT 1)
            THEN false ELSE true END;
