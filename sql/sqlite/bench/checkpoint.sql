-- What is in the log goes to its place.
PRAGMA wal_checkpoint(TRUNCATE);
