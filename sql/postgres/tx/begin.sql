-- Each statement must see what was committed before it: whatever the default of the database is.
-- in:  none
-- out: none
BEGIN ISOLATION LEVEL READ COMMITTED;
