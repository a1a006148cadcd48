-- A schema for the tables of a bench, and nothing else.
DROP SCHEMA IF EXISTS sluice_bench CASCADE;
CREATE SCHEMA sluice_bench;
COMMENT ON SCHEMA sluice_bench IS 'made by sluice bench';
