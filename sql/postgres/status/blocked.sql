-- How many keys wait: for the retry or the time of their head, or for an operator.
-- in:  none
-- out: keys int8
SELECT count(*) FROM sluice_outbox_keys k;
