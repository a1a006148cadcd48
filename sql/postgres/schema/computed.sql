-- Is this column computed by the database? Then it holds nothing of anyone's.
-- in:  quoted_table text, column text
-- out: computed bool
SELECT a.attgenerated <> ''
  FROM pg_attribute a
 WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped;
