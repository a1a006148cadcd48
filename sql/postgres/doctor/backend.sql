-- Which of the server's processes answers: behind a pooler in transaction mode it is not always the same.
-- in:  none
-- out: pid int8
SELECT pg_backend_pid()::bigint;
