-- Reads the whole file, but for the order within indexes: "ok", or up to five complaints.
-- in:  none
-- out: complaint text
PRAGMA quick_check(5);
