-- BEGIN IMMEDIATE has locked the file already; this keeps the same steps as elsewhere.
-- in:  quoted_table text
-- out: locked bool
SELECT ?1 IS NOT NULL;
