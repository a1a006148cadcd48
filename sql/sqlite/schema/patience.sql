-- BEGIN IMMEDIATE has waited already; this keeps the same steps as elsewhere.
-- in:  lock_ms text
-- out: s1 text, s2 text
SELECT ?1, '';
