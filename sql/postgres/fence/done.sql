-- Nothing of that node gets in there any more.
-- in:  session int8, way int8
-- out: none
DELETE FROM sluice_outbox_fences f WHERE f.session = $1 AND f.way = $2;
