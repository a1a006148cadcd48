-- May this role vacuum the outbox? Only its owner may, and who has the owner's rights.
-- in:  none
-- out: may bool
SELECT pg_has_role(c.relowner, 'usage') FROM pg_class c WHERE c.oid = 'sluice_outbox'::regclass;
