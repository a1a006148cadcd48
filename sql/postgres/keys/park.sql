-- Stop a key until an operator says otherwise, whether it has messages or not; one that is parked already stays as it
-- is. keys/look has run before in this transaction: the number of lanes cannot change while the outbox is in use.
-- in:  key text, reason text
-- out: none
INSERT INTO sluice_outbox_keys AS k (entity_key, lane, head, due_at, reason, fence)
SELECT $1, ((hashtextextended($1, 0) & 9223372036854775807) % m.value::bigint)::integer, 0, 'infinity', $2,
       9223372036854775807
  FROM sluice_outbox_meta m
 WHERE m.name = 'lanes'
    ON CONFLICT (entity_key) DO UPDATE
   SET due_at = excluded.due_at, reason = coalesce(excluded.reason, k.reason), fence = excluded.fence
 WHERE k.due_at < 'infinity';
