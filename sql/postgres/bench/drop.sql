-- With the schema all that is in it.
DROP SCHEMA IF EXISTS sluice_bench CASCADE;
