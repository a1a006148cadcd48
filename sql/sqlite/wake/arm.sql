-- Every commit changes the file.
-- in:  none
-- out: mine bool, armed bool
SELECT 1, 1;
