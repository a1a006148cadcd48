-- Who watches the file hears of every commit (the driver's await): nothing is to be said here.
-- in:  none
-- out: none
PRAGMA shrink_memory;
