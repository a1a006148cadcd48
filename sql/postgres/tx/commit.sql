-- in:  none
-- out: none
COMMIT;
