-- A snapshot that is held open from here on.
-- in:  none
-- out: rows int8
SELECT count(*) FROM sluice_outbox_meta;
