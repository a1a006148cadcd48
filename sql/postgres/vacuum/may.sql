-- May this role vacuum the outbox? Only its owner may, and who has the owner's rights. If so, a vacuum of this session
-- pauses for a millisecond after every few pages: all at once it takes a processor from those who work, for as long as
-- they need for several batches.
-- in:  none
-- out: may bool
SELECT pg_has_role(c.relowner, 'usage') AND set_config('vacuum_cost_delay', '1', false) IS NOT NULL
  FROM pg_class c
 WHERE c.oid = 'sluice_outbox'::regclass;
