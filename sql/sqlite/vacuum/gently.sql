-- There is nothing to be gentle with.
-- in:  points int8
-- out: looks text, delay text, points text
SELECT '0', '0', CAST(?1 AS text);
