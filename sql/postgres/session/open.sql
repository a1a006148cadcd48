-- The first statement of a session: is this a standby? Then settings for the session:
-- a bound for transactions that idle, in milliseconds (0: none), so that a worker which the network
-- lost does not hold its rows for hours; and no reading of whole tables. A plan that was made while
-- the table was empty is kept, and would read all of it for each claim once it is full.
-- in:  idle_ms text
-- out: standby bool, s1 text, s2 text, s3 text
SELECT pg_is_in_recovery(),
       set_config('idle_in_transaction_session_timeout', $1, false),
       set_config('enable_seqscan', 'off', false),
       set_config('jit', 'off', false);
