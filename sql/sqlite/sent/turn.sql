-- First of a transaction that purges, which is the only writer.
-- in:  none
-- out: mine bool
SELECT 1;
