-- Another number of lanes, first half: the column goes. schema/adopt adds it again, and 002 has the
-- index.
DROP INDEX IF EXISTS sluice_outbox_ix_lane;
ALTER TABLE sluice_outbox DROP COLUMN lane;
