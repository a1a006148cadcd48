-- Around a bulk push in a transaction that is not ours.
-- in:  none
-- out: none
RELEASE sluice_push;
