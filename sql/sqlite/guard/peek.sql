-- Is there anything to do, but for what others have leased? By lane, since that index knows nothing of
-- held messages; what has gone below the floor is then passed by without a look at the table.
-- in:  floor int8, turns int8
-- out: any bool
WITH leased AS (
    SELECT c.claim FROM sluice_outbox_claims c WHERE c.epoch >= ?2 AND c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now')
)
SELECT EXISTS (SELECT 1 FROM sluice_outbox o INDEXED BY sluice_outbox_ix_lane
                WHERE o.lane >= 0 AND o.id >= ?1 AND o.held = 0 AND ifnull('k' || o.entity_key, 'i' || o.id) NOT IN leased)
    OR EXISTS (SELECT 1 FROM sluice_outbox_keys k
                WHERE k.due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now') AND 'k' || k.entity_key NOT IN leased)
    OR EXISTS (SELECT 1 FROM sluice_outbox o INDEXED BY sluice_outbox_ix_due
                WHERE o.held = 1 AND o.entity_key IS NULL AND julianday(o.available_at) <= julianday('now')
                  AND 'i' || o.id NOT IN leased)
    OR EXISTS (SELECT 1 FROM sluice_outbox o INDEXED BY sluice_outbox_ix_delayed
                WHERE o.delayed = 1 AND julianday(o.available_at) <= julianday('now')
                  AND 'k' || o.entity_key NOT IN leased);
