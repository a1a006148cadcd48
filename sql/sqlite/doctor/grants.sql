-- Whoever may write the file may do everything.
-- in:  strategy text, keeps int8, delivery text, fence int8
-- out: role text, privilege text, object text, granted bool
SELECT ?1, '', ?3, 1 WHERE ?2 + ?4 < 0;
