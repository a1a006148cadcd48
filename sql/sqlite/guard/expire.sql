-- Turns that were over a day ago. Their keys have no messages any more, or somebody would have taken them.
-- in:  turns int8
-- out: none
DELETE FROM sluice_outbox_claims WHERE epoch >= ?1 AND ends_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day');
