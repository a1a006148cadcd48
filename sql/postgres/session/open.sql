-- The first statement of a session: is this a standby? Then settings for the session:
-- a bound for transactions that idle, in milliseconds (0: none), so that a worker which the network
-- lost does not hold its rows for hours; and no reading of whole tables, nor of all that an index has
-- before the first row is returned. A plan that was made while the table was empty is kept, or made anew
-- when autovacuum looks at a table that is empty for a moment, and would read all of it for each claim.
-- `plans` is NULL, or force_generic_plan: with these settings the best plan is the same for all values, but in a table of ten
-- million rows it looks dear to the planner as long as it does not know them, so that it plans anew for each batch.
-- Statements see what others have committed (read committed), and a claim that was granted survives a crash
-- of the server, whatever the defaults of the database are.
-- in:  idle_ms text, plans text
-- out: standby bool, s1 text, s2 text, s3 text, s4 text, s5 text, s6 text, s7 text
SELECT pg_is_in_recovery(),
       set_config('idle_in_transaction_session_timeout', $1, false),
       set_config('enable_seqscan', 'off', false),
       set_config('enable_bitmapscan', 'off', false),
       set_config('jit', 'off', false),
       CASE WHEN $2::text IS NOT NULL THEN set_config('plan_cache_mode', $2, false) END,
       set_config('default_transaction_isolation', 'read committed', false),
       CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'local', false) END;
