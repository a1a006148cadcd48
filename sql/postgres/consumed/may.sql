-- May this role run consumed/waiting, and consumed/orphans?
-- in:  none
-- out: looks bool, acts bool
SELECT has_table_privilege('sluice_outbox_consumed', 'select') AND has_table_privilege('sluice_outbox_nodes', 'select'),
       has_table_privilege('sluice_outbox_consumed', 'delete') AND has_table_privilege('sluice_outbox_dead', 'insert');
