-- Nothing of that is counted here.
-- in:  none
-- out: wal int8, dead int8, pid int8, version text
SELECT 0, 0, 0, 'SQLite ' || sqlite_version();
