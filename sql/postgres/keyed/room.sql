-- How many locks the server has room for, in all its sessions together.
-- in:  none
-- out: locks int8
SELECT current_setting('max_locks_per_transaction')::bigint
       * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint);
