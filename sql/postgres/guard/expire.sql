-- Turns that were over a day ago. Their keys have no messages any more, or somebody would have taken them.
-- in:  turns int8
-- out: none
DELETE FROM sluice_outbox_claims c WHERE c.epoch >= $1 AND c.ends_at < clock_timestamp() - interval '1 day';
