-- The options that the trigger was made by.
-- in:  options text
-- out: none
INSERT INTO sluice_outbox_meta (name, value) VALUES ('debezium', ?1)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
