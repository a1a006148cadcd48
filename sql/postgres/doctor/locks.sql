-- The server's table of locks: what each session brings, and how many of them.
-- in:  none
-- out: each int8, sessions int8
SELECT current_setting('max_locks_per_transaction')::bigint,
       current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint;
