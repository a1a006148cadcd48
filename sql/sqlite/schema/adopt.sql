-- Run, statement by statement, where the table is there already: each adds one column that it
-- lacks. `id` and `payload` must be there. A column added here can have no computed default: where
-- created_at or available_at is NULL, the message counts as due now.
ALTER TABLE sluice_outbox ADD COLUMN topic TEXT NOT NULL DEFAULT 'sluice';
ALTER TABLE sluice_outbox ADD COLUMN entity_key TEXT;
ALTER TABLE sluice_outbox ADD COLUMN event_type TEXT NOT NULL DEFAULT '';
ALTER TABLE sluice_outbox ADD COLUMN content_type TEXT NOT NULL DEFAULT 'application/json';
ALTER TABLE sluice_outbox ADD COLUMN headers TEXT;
ALTER TABLE sluice_outbox ADD COLUMN idempotency_key TEXT;
ALTER TABLE sluice_outbox ADD COLUMN created_at TEXT;
ALTER TABLE sluice_outbox ADD COLUMN available_at TEXT;
ALTER TABLE sluice_outbox ADD COLUMN lane INTEGER GENERATED ALWAYS AS (
    ((CASE WHEN entity_key IS NULL THEN id ELSE
      ( length(entity_key)
      + ifnull(unicode(substr(entity_key, 1, 1)), 0) * 31
      + ifnull(unicode(substr(entity_key, 2, 1)), 0) * 1009
      + ifnull(unicode(substr(entity_key, 3, 1)), 0) * 30011
      + ifnull(unicode(substr(entity_key, 4, 1)), 0) * 900001
      + ifnull(unicode(substr(entity_key, 5, 1)), 0) * 27000011
      + ifnull(unicode(substr(entity_key, 6, 1)), 0) * 810000023
      + ifnull(unicode(substr(entity_key, 7, 1)), 0) * 131
      + ifnull(unicode(substr(entity_key, 8, 1)), 0) * 17159
      + ifnull(unicode(substr(entity_key, 9, 1)), 0) * 2248091
      + ifnull(unicode(substr(entity_key, 10, 1)), 0) * 294499921
      + ifnull(unicode(substr(entity_key, 11, 1)), 0) * 613
      + ifnull(unicode(substr(entity_key, 12, 1)), 0) * 74093
      + ifnull(unicode(substr(entity_key, 13, 1)), 0) * 9000011
      + ifnull(unicode(substr(entity_key, 14, 1)), 0) * 104729
      + ifnull(unicode(substr(entity_key, 15, 1)), 0) * 1299709
      + ifnull(unicode(substr(entity_key, 16, 1)), 0) * 15485863
      + ifnull(unicode(substr(entity_key, 17, 1)), 0) * 179424673
      + ifnull(unicode(substr(entity_key, 18, 1)), 0) * 37
      + ifnull(unicode(substr(entity_key, 19, 1)), 0) * 1013
      + ifnull(unicode(substr(entity_key, 20, 1)), 0) * 30013
      + ifnull(unicode(substr(entity_key, 21, 1)), 0) * 900007
      + ifnull(unicode(substr(entity_key, 22, 1)), 0) * 27000013
      + ifnull(unicode(substr(entity_key, 23, 1)), 0) * 810000037
      + ifnull(unicode(substr(entity_key, 24, 1)), 0) * 137
      + ifnull(unicode(substr(entity_key, -1, 1)), 0) * 17167
      + ifnull(unicode(substr(entity_key, -2, 1)), 0) * 2248093
      + ifnull(unicode(substr(entity_key, -3, 1)), 0) * 294499957
      + ifnull(unicode(substr(entity_key, -4, 1)), 0) * 617
      + ifnull(unicode(substr(entity_key, -5, 1)), 0) * 74099
      + ifnull(unicode(substr(entity_key, -6, 1)), 0) * 9000041
      + ifnull(unicode(substr(entity_key, -7, 1)), 0) * 104743
      + ifnull(unicode(substr(entity_key, -8, 1)), 0) * 1299721
      ) % 1000003
    END % sluice_lanes) + sluice_lanes) % sluice_lanes) VIRTUAL;
ALTER TABLE sluice_outbox ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sluice_outbox ADD COLUMN last_error TEXT;
ALTER TABLE sluice_outbox ADD COLUMN leased_until TEXT;
ALTER TABLE sluice_outbox ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sluice_outbox ADD COLUMN worker TEXT;
