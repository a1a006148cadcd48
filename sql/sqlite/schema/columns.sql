-- What the table is made of (generated columns too); no rows when it is not there.
-- in:  quoted_table text
-- out: column text, type text
SELECT c.name, lower(c.type) FROM pragma_table_xinfo(trim(?1, '"')) c ORDER BY c.cid;
