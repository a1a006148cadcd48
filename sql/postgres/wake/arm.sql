-- From now on whoever inserts notifies: with the lock of schema/003 in our hands (`mine`) no insert is on
-- its way that does not. `armed` also when another node has it: then it is the one whom inserts find. The
-- lock is 64 bits; pg_locks has it in two halves.
-- in:  none
-- out: mine bool, armed bool
SELECT t.mine,
       t.mine OR EXISTS (SELECT FROM pg_locks l
                          WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted
                            AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                            AND l.objsubid = 1
                            AND l.classid::bigint = (t.k >> 32) & 4294967295 AND l.objid::bigint = t.k & 4294967295)
  FROM (SELECT k.k, pg_try_advisory_lock(k.k) AS mine
          FROM (SELECT hashtextextended('w', 'sluice_outbox'::regclass::oid::bigint) AS k) k
        OFFSET 0) t;
