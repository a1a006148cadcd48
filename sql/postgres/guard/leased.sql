-- How many keys guard/lease has leased, in the same transaction.
-- in:  none
-- out: keys int8
SELECT cardinality(c.keys)::bigint FROM sluice_outbox_claims c WHERE c.epoch = currval('sluice_outbox_epoch');
