-- The next fencing token, of a turn. The DELETE deletes nothing: with it this transaction counts among
-- those that write to the table before the number is drawn, so that floor/writers knows of it until its
-- row can be seen.
-- in:  none
-- out: epoch int8
WITH writer AS (DELETE FROM sluice_outbox_claims c WHERE c.epoch < 0)
SELECT nextval('sluice_outbox_epoch');
