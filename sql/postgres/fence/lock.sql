-- Has nobody else done it meanwhile? Then nobody will, until the transaction ends.
-- in:  session int8, way int8
-- out: way int8
SELECT f.way::bigint FROM sluice_outbox_fences f WHERE f.session = $1 AND f.way = $2 FOR UPDATE;
