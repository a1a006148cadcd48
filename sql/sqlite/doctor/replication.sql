-- There is none.
-- in:  none
-- out: kind text, name text, active bool, xids int8, wal_bytes int8
SELECT '', '', 0, 0, 0 WHERE 0;
