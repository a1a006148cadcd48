-- From here on each row that is inserted into their table is a message, in the same transaction; what becomes of the row
-- does not matter any more. sluice_values is made of their columns by src/db/capture.c.
DROP TRIGGER IF EXISTS sluice_outbox_tr_capture;
CREATE TRIGGER sluice_outbox_tr_capture AFTER INSERT ON sluice_source
BEGIN
    INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, content_type, headers, created_at)
    VALUES (sluice_values);
END;
