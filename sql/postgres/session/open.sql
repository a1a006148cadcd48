-- The first statement of a session: is this a standby? And a bound for transactions that idle, in
-- milliseconds (0: none), so that a worker which the network lost does not hold its rows for hours.
-- in:  idle_ms text
-- out: standby bool, idle_ms text
SELECT pg_is_in_recovery(), set_config('idle_in_transaction_session_timeout', $1, false);
