-- How the file is written. Asking does not change it.
-- in:  none
-- out: mode text
PRAGMA journal_mode;
