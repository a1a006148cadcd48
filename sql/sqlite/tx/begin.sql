-- A deferred BEGIN would fail at once when it turns into a writer, whatever the timeout.
-- in:  none
-- out: none
BEGIN IMMEDIATE;
