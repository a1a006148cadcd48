-- in:  none
-- out: none
ROLLBACK;
