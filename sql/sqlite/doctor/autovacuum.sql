-- Nothing needs one.
-- in:  none
-- out: enabled bool, counts bool, workers int8, busy int8, xids int8, freeze_at int8
SELECT 0, 0, 0, 0, 0, 0 WHERE 0;
