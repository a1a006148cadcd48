-- The key of this message waits until the message is due, and no lease of skip-locked is left on it.
-- A key that is parked stays so.
-- in:  id int8[]
-- out: none
INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at, reason)
SELECT o.entity_key, o.lane, o.id, max(strftime('%Y-%m-%d %H:%M:%f', o.available_at), ifnull(o.leased_until, '')), o.last_error
  FROM sluice_outbox o
 WHERE o.id = ?1 AND o.entity_key IS NOT NULL
    ON CONFLICT (entity_key) DO UPDATE
   SET lane = excluded.lane, head = excluded.head,
       due_at = CASE WHEN due_at = '9999-12-31 23:59:59.999' THEN due_at ELSE excluded.due_at END,
       reason = coalesce(excluded.reason, reason);
