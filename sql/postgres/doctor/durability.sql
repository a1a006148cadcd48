-- What a crash of the server, or of its machine, may cost.
-- in:  none
-- out: fsync bool, full_page_writes bool, synchronous_commit text
SELECT current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean,
       current_setting('synchronous_commit');
