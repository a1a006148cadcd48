-- How many keys wait: for the retry or the time of their head, or for an operator; and how many of them for an operator.
-- in:  none
-- out: keys int8, parked int8
SELECT count(*), count(*) FILTER (WHERE k.due_at = '9999-12-31 23:59:59.999') FROM sluice_outbox_keys k;
