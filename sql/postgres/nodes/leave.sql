-- A node that stops leaves at once: its lanes are free with this.
-- in:  session int8
-- out: none
DELETE FROM sluice_outbox_nodes n WHERE n.session = $1;
