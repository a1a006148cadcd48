-- What is known about the table: schema_version, lanes.
-- in:  none
-- out: name text, value text
SELECT m.name, m.value FROM sluice_outbox_meta m ORDER BY m.name;
