-- Another number of lanes, first half: the column goes, and with it the index. schema/adopt adds it
-- again, and 002 has the index.
ALTER TABLE sluice_outbox DROP COLUMN lane;
