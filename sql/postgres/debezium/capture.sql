-- From here on each row that is inserted into their table is a message, in the same transaction; what becomes of the row
-- does not matter any more. sluice_values is made of their columns by src/db/capture.c.
-- A producer may insert into their table and knows no other: so this runs as the owner, as in schema/004, and the table
-- has its schema before it. The trigger is made once: it locks their table against writers, and needs to be no other.
DO $sluice_do$
DECLARE
    home text;
BEGIN
    SELECT format('%I.%I', n.nspname, c.relname) INTO STRICT home
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.oid = 'sluice_outbox'::regclass;
    EXECUTE format($sluice_function$
CREATE OR REPLACE FUNCTION sluice_outbox_capture() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $sluice_body$
BEGIN
    INSERT INTO %s (topic, entity_key, event_type, payload, content_type, headers, created_at)
    VALUES (sluice_values);
    RETURN NULL;
END
$sluice_body$
$sluice_function$, home);
    REVOKE ALL ON FUNCTION sluice_outbox_capture() FROM PUBLIC;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t
                    WHERE t.tgrelid = 'sluice_source'::regclass AND t.tgfoid = 'sluice_outbox_capture'::regproc) THEN
        CREATE TRIGGER sluice_outbox_tr_capture AFTER INSERT ON sluice_source
           FOR EACH ROW EXECUTE FUNCTION sluice_outbox_capture();
    ELSIF EXISTS (SELECT FROM pg_catalog.pg_trigger t
                   WHERE t.tgrelid = 'sluice_source'::regclass AND t.tgfoid = 'sluice_outbox_capture'::regproc
                     AND t.tgenabled = 'D') THEN
        ALTER TABLE sluice_source ENABLE TRIGGER sluice_outbox_tr_capture;
    END IF;
END
$sluice_do$;
