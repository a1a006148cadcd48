-- Version 3: waking. An insert wakes nodes that sleep, and costs producers next to nothing while none does.
-- A producer holds the lock until it commits, shared with the others. A node that goes to sleep takes it
-- alone: when it has it, no insert is on its way that it could miss, and whoever inserts from then on finds
-- the lock taken and notifies. Nobody ever waits for it.
CREATE OR REPLACE FUNCTION sluice_outbox_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_catalog.pg_try_advisory_xact_lock_shared(pg_catalog.hashtextextended('w', TG_RELID::bigint)) THEN
        PERFORM pg_catalog.pg_notify(pg_catalog.btrim('sluice_outbox_tr_wake', '"'), '');
    END IF;
    RETURN NULL;
END
$$;

DROP TRIGGER IF EXISTS sluice_outbox_tr_wake ON sluice_outbox;
CREATE TRIGGER sluice_outbox_tr_wake AFTER INSERT ON sluice_outbox
   FOR EACH STATEMENT EXECUTE FUNCTION sluice_outbox_wake();

UPDATE sluice_outbox_meta SET value = '3' WHERE name = 'schema_version';
