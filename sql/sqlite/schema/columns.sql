-- What the table is made of (generated columns too); no rows when it is not there. Whether an id
-- can be given a second time is part of its type.
-- in:  quoted_table text
-- out: column text, type text
SELECT c.name,
       lower(c.type) || CASE WHEN c.pk AND m.sql LIKE '%AUTOINCREMENT%' THEN ' autoincrement' ELSE '' END
  FROM pragma_table_xinfo(trim(?1, '"')) c
  LEFT JOIN sqlite_master m ON m.type = 'table' AND m.name = trim(?1, '"')
 ORDER BY c.cid;
