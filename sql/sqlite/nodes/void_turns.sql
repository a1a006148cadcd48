-- A node of another strategy than guard comes: what is left of turns that are over is void, and can neither
-- be renewed nor settled.
-- in:  strategy text
-- out: none
DELETE FROM sluice_outbox_claims WHERE ends_at <= strftime('%Y-%m-%d %H:%M:%f', 'now') AND ?1 <> 'guard';
