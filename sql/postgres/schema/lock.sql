-- One migration at a time, also when many nodes start at once on an empty database. Held until the
-- end of the transaction.
-- in:  quoted_table text
-- out: locked bool
SELECT pg_advisory_xact_lock(hashtextextended($1, 5315)) IS NOT NULL;
