-- Whoever may write the file may do everything.
-- in:  strategy text, keeps int8
-- out: role text, privilege text, object text, granted bool
SELECT ?1, '', '', 1 WHERE ?2 < 0;
