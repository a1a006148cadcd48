-- The next fencing token, of a turn. The statements that follow read it from the row.
-- in:  none
-- out: epoch int8
UPDATE sluice_outbox_meta SET value = CAST(value AS INTEGER) + 1 WHERE name = 'epoch'
RETURNING CAST(value AS INTEGER);
