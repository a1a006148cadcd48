-- The database's clock is this machine's own.
-- in:  none
-- out: now_us int8
SELECT 0 WHERE 0;
