-- Transactions of two phases that were prepared in this database and neither committed nor rolled back.
-- in:  none
-- out: gid text, owner text, age_us int8
SELECT p.gid, p.owner::text, (extract(EPOCH FROM clock_timestamp() - p.prepared) * 1000000)::bigint
  FROM pg_prepared_xacts p
 WHERE p.database = current_database()
 ORDER BY p.prepared;
