-- Before a table is locked for itself, until the end of the transaction: whoever comes behind a
-- lock that is waited for waits as well, so that this must be short; what follows takes the time
-- that it takes.
-- in:  lock_ms text
-- out: s1 text, s2 text
SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', '0', true);
