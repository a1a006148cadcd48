-- Tables have files of their own: doctor/tables.
-- in:  none
-- out: pages int8, unused int8, page_bytes int8
SELECT 0::bigint, 0::bigint, 0::bigint WHERE false;
