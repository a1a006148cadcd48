-- The key has just been parked, and is locked with it: which held message may be in flight. A settle of it counts an
-- attempt, or takes it away.
-- in:  key text
-- out: none
UPDATE sluice_outbox_keys k
   SET head = h.sluice_id, doubt = h.sluice_id, tried = h.sluice_tried
  FROM (SELECT o.id AS sluice_id, coalesce(o.attempts, 0) AS sluice_tried
          FROM sluice_outbox o
         WHERE o.held AND NOT o.delayed AND o.entity_key = $1
         ORDER BY o.id
         LIMIT 1) h
 WHERE k.entity_key = $1;
