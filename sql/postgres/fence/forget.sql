-- A node leaves, and nothing of it is under way any more.
-- in:  session int8
-- out: none
DELETE FROM sluice_outbox_fences f WHERE f.session = $1;
