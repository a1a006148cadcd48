-- Nothing of that node gets in there any more.
-- in:  session int8, way int8
-- out: none
DELETE FROM sluice_outbox_fences WHERE session = ?1 AND way = ?2;
