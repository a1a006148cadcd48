-- A table that lay still for a while. Never in a transaction.
-- in:  none
-- out: none
VACUUM (ANALYZE) sluice_outbox;
