-- Is what is inserted into their table captured, and by which options?
-- in:  quoted_source text
-- out: captured bool, options text
SELECT EXISTS (SELECT FROM pg_trigger t
                WHERE t.tgrelid = to_regclass($1) AND t.tgname = btrim('sluice_outbox_tr_capture', '"')
                  AND t.tgenabled <> 'D'),
       coalesce((SELECT m.value FROM sluice_outbox_meta m WHERE m.name = 'debezium'), '');
