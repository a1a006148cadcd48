-- Is this column computed by the database? Then it holds nothing of anyone's.
-- in:  quoted_table text, column text
-- out: computed bool
SELECT c.hidden IN (2, 3) FROM pragma_table_xinfo(trim(?1, '"')) c WHERE c.name = ?2;
