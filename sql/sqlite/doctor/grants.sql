-- Whoever may write the file may do everything.
-- in:  strategy text
-- out: role text, privilege text, object text, granted bool
SELECT ?1, '', '', 1 WHERE 0;
