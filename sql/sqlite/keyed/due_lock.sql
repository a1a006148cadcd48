-- Blocked keys that are due, the longest due first, and held messages without a key. The write
-- transaction is the lock. `id`: the first that is held; none: the key waits for nothing.
-- in:  keys_max int8, turns int8
-- out: claim text, id int8
SELECT d.sluice_claim, d.sluice_id
  FROM (SELECT * FROM (SELECT 'k' || k.entity_key AS sluice_claim,
                              (SELECT min(o.id) FROM sluice_outbox o WHERE o.held = 1 AND o.delayed = 0 AND o.entity_key = k.entity_key)
                              AS sluice_id
                         FROM sluice_outbox_keys k
                        WHERE k.due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
                        ORDER BY k.due_at
                        LIMIT ?1)
        UNION ALL
        SELECT * FROM (SELECT 'i' || o.id, o.id
                         FROM sluice_outbox o INDEXED BY sluice_outbox_ix_due
                        WHERE o.held = 1 AND o.entity_key IS NULL AND julianday(o.available_at) <= julianday('now')
                          AND ifnull(o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 1)
                        ORDER BY o.available_at
                        LIMIT ?1)) d
 WHERE NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c
                    WHERE c.claim = d.sluice_claim AND c.epoch >= ?2 AND c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now'))
 LIMIT ?1;
