-- Indexes that `init` makes, and whether they are there: ok, missing or invalid. An invalid one, of whatever name,
-- is what a CREATE INDEX CONCURRENTLY leaves that failed: it is kept up to date and never used.
-- An adopted table may have another primary key: what is delivered is looked up by id, the second column of the
-- index of the lanes.
-- in:  none
-- out: index text, state text
WITH t (tbl) AS (
    VALUES (to_regclass('sluice_outbox')), (to_regclass('sluice_outbox_dead')), (to_regclass('sluice_outbox_sent')),
           (to_regclass('sluice_outbox_keys')),
           (to_regclass('sluice_outbox_claims')), (to_regclass('sluice_outbox_nodes')),
           (to_regclass('sluice_outbox_lanes')), (to_regclass('sluice_outbox_meta')),
           (to_regclass('sluice_outbox_idempotency')), (to_regclass('sluice_outbox_consumed')),
           (to_regclass('sluice_outbox_fences'))
), have AS (
    SELECT c.relname::text AS name, i.indisvalid AND i.indisready AS good
      FROM t
      JOIN pg_index i ON i.indrelid = t.tbl
      JOIN pg_class c ON c.oid = i.indexrelid
), wanted (name) AS (
    VALUES (trim('sluice_outbox_ix_idempotency', '"')), (trim('sluice_outbox_ix_lane', '"')),
           (trim('sluice_outbox_ix_held', '"')), (trim('sluice_outbox_ix_delayed', '"')),
           (trim('sluice_outbox_ix_due', '"')), (trim('sluice_outbox_ix_parked', '"')),
           (trim('sluice_outbox_ix_keys', '"')), (trim('sluice_outbox_ix_idem_live', '"')),
           (trim('sluice_outbox_ix_idem_gone', '"')), (trim('sluice_outbox_ix_idem_dead', '"')), (trim('sluice_outbox_ix_idem_cons', '"')),
           (trim('sluice_outbox_ix_sent', '"')), (trim('sluice_outbox_ix_sent_key', '"'))
)
SELECT w.name, CASE WHEN h.good THEN 'ok' WHEN h.good IS NULL THEN 'missing' ELSE 'invalid' END
  FROM wanted w
  LEFT JOIN have h ON h.name = w.name
UNION ALL
SELECT h.name, 'invalid' FROM have h WHERE NOT h.good AND NOT EXISTS (SELECT FROM wanted w WHERE w.name = h.name)
UNION ALL
SELECT 'primary key of ' || t.tbl::text, 'missing'
  FROM t
 WHERE t.tbl IS NOT NULL AND (SELECT c.relkind <> 'p' FROM pg_class c WHERE c.oid = t.tbl)
   AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = t.tbl AND i.indisunique AND i.indpred IS NULL)
UNION ALL
SELECT 'unique index on ' || a.attname || ' of ' || l.indrelid::regclass::text, 'missing'
  FROM pg_index l
  JOIN pg_class n ON n.oid = l.indexrelid AND n.relname = trim('sluice_outbox_ix_lane', '"')
  JOIN pg_attribute a ON a.attrelid = l.indrelid AND a.attnum = l.indkey[1]
 WHERE l.indrelid = to_regclass('sluice_outbox')
   AND (SELECT c.relkind <> 'p' FROM pg_class c WHERE c.oid = l.indrelid)
   AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = l.indrelid AND i.indisunique AND i.indpred IS NULL)
   AND NOT EXISTS (SELECT FROM pg_index i
                    WHERE i.indrelid = l.indrelid AND i.indisunique AND i.indpred IS NULL AND i.indisvalid
                      AND i.indkey[0] = l.indkey[1]);
