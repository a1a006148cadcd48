-- Readers beside one writer; a commit is on the disk before it is told.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
