-- There is nothing that would have to be let go of.
-- in:  none
-- out: had bool, told text
SELECT 1, '';
