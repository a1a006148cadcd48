-- The next fencing token. Always drawn after the lock on what it fences: so that of two owners the
-- later one has the larger. The statements that follow in the session read it with currval.
-- in:  none
-- out: epoch int8
SELECT nextval('sluice_outbox_epoch');
