-- Transactions that may still commit messages with ids, or turns with epochs, that were given out before
-- now: a writer locks the table before it draws a number, and until it ends.
-- in:  none
-- out: writer text
SELECT l.virtualtransaction
  FROM pg_locks l
 WHERE l.locktype = 'relation' AND l.relation IN ('sluice_outbox'::regclass, 'sluice_outbox_claims'::regclass)
   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
   AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid();
