-- Version 3: waking. A node that sleeps watches the file: there is nothing to be made for it.
UPDATE sluice_outbox_meta SET value = '3' WHERE name = 'schema_version';
