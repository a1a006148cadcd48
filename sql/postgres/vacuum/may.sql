-- May this role vacuum the outbox? Only its owner may, and who has the owner's rights. Of layout rotated it need not be:
-- its segments are emptied as a whole.
-- in:  none
-- out: may bool
SELECT pg_has_role(c.relowner, 'usage') AND c.relkind <> 'p' FROM pg_class c WHERE c.oid = 'sluice_outbox'::regclass;
