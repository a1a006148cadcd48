-- Is what is inserted into their table captured, and by which options?
-- in:  quoted_source text
-- out: captured bool, options text
SELECT EXISTS (SELECT 1 FROM sqlite_master t
                WHERE t.type = 'trigger' AND t.tbl_name = trim(?1, '"')
                  AND t.name = trim('sluice_outbox_tr_capture', '"')),
       coalesce((SELECT m.value FROM sluice_outbox_meta m WHERE m.name = 'debezium'), '');
