-- The keys of these messages wait until the messages are due, and no lease of skip-locked is left on
-- them. Of several of one key the first counts. A key that is parked stays so.
-- in:  id int8[]
-- out: none
INSERT INTO sluice_outbox_keys AS k (entity_key, lane, head, due_at, reason)
SELECT DISTINCT ON (o.entity_key) o.entity_key, o.lane, o.id, greatest(o.available_at, o.leased_until), o.last_error
  FROM sluice_outbox o
 WHERE o.id = ANY ($1) AND o.entity_key IS NOT NULL
 ORDER BY o.entity_key, o.id
    ON CONFLICT (entity_key) DO UPDATE
   SET lane = excluded.lane, head = excluded.head,
       due_at = CASE WHEN k.due_at = 'infinity' THEN k.due_at ELSE excluded.due_at END,
       reason = coalesce(excluded.reason, k.reason);
