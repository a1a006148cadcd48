-- There is one writer at a time, and ids are committed in their order: nobody.
-- in:  none
-- out: writer text
SELECT '' WHERE 0;
