-- There are no hint bits to set.
-- in:  none
-- out: bytes int8
SELECT 0;
