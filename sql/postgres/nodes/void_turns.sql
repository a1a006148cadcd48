-- A node of another strategy than guard comes: what is left of turns that are over is void, and can neither
-- be renewed nor settled. One that is renewed at this moment is waited for; nodes/join then sees it.
-- in:  strategy text
-- out: none
DELETE FROM sluice_outbox_claims c WHERE c.ends_at <= clock_timestamp() AND $1 <> 'guard';
