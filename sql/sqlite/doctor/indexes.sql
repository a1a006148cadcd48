-- Indexes that `init` makes, and whether they are there: ok or missing.
-- in:  none
-- out: index text, state text
WITH wanted (name) AS (
    VALUES (trim('sluice_outbox_ix_idempotency', '"')), (trim('sluice_outbox_ix_lane', '"')),
           (trim('sluice_outbox_ix_key', '"')), (trim('sluice_outbox_ix_held', '"')), (trim('sluice_outbox_ix_delayed', '"')),
           (trim('sluice_outbox_ix_due', '"')), (trim('sluice_outbox_ix_parked', '"')),
           (trim('sluice_outbox_ix_keys', '"')), (trim('sluice_outbox_ix_idem_live', '"')),
           (trim('sluice_outbox_ix_idem_gone', '"')), (trim('sluice_outbox_ix_idem_dead', '"')), (trim('sluice_outbox_ix_idem_cons', '"')), (trim('sluice_outbox_ix_claims', '"')),
           (trim('sluice_outbox_ix_sent', '"')), (trim('sluice_outbox_ix_sent_id', '"')), (trim('sluice_outbox_ix_sent_key', '"'))
)
SELECT w.name, CASE WHEN m.name IS NULL THEN 'missing' ELSE 'ok' END
  FROM wanted w
  LEFT JOIN sqlite_master m ON m.type = 'index' AND m.name = w.name;
