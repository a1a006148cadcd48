-- One node joins at a time, so that two that may not live together cannot miss each other.
-- in:  none
-- out: none
LOCK TABLE sluice_outbox_nodes IN SHARE ROW EXCLUSIVE MODE;
