-- Tables are not measured one by one: doctor/pages has the whole file.
-- in:  none
-- out: tbl text, live int8, dead int8, heap_bytes int8, index_bytes int8, indexes int8, row_bytes int8, fill int8,
--      enabled bool, vacuumed bool
SELECT '', 0, 0, 0, 0, 0, 0, 0, 0, 0 WHERE 0;
