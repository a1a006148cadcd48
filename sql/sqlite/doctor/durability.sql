-- Each connection says so for itself; Sluice's own are safe.
-- in:  none
-- out: fsync bool, full_page_writes bool, synchronous_commit text
SELECT 0, 0, '' WHERE 0;
