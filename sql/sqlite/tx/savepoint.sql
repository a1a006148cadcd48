-- Around a bulk push in a transaction that is not ours.
-- in:  none
-- out: none
SAVEPOINT sluice_push;
