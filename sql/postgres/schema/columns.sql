-- What the table is made of; no rows when it is not there.
-- in:  quoted_table text
-- out: column text, type text
SELECT a.attname::text, format_type(a.atttypid, NULL)
  FROM pg_attribute a
 WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum;
