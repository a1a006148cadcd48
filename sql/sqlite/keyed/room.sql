-- How many locks there is room for: one is enough.
-- in:  none
-- out: locks int8
SELECT 1000000;
