-- How many keys guard/lease has leased, in the same transaction.
-- in:  none
-- out: keys int8
SELECT count(*) FROM sluice_outbox_claims c
 WHERE c.epoch = (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch');
