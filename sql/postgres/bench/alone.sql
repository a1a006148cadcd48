-- Is no other bench at work in this database? And is there a schema of that name that is not of one before?
-- in:  none
-- out: alone bool, foreign_schema bool
SELECT pg_try_advisory_lock(7310021847562),
       EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = 'sluice_bench'
                  AND obj_description(n.oid, 'pg_namespace') IS DISTINCT FROM 'made by sluice bench');
