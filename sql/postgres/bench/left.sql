-- What is in the tables: waiting, of those set aside, dead letters.
-- in:  none
-- out: waiting int8, held int8, dead int8
SELECT count(*), count(*) FILTER (WHERE o.held), (SELECT count(*) FROM sluice_outbox_dead) FROM sluice_outbox o;
