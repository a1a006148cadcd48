-- Has nobody else done it meanwhile? Then nobody will, until the transaction ends.
-- in:  session int8, way int8
-- out: way int8
SELECT way FROM sluice_outbox_fences WHERE session = ?1 AND way = ?2;
