-- Messages with ids from `first` on, whose keys take turns; each hot-th one is of one key (0: none).
-- in:  first int8, rows int8, prefix text, keys int8, hot int8, bytes int8
-- out: none
WITH RECURSIVE series (g) AS (SELECT ?1 WHERE ?2 > 0 UNION ALL SELECT g + 1 FROM series WHERE g < ?1 + ?2 - 1)
INSERT INTO sluice_outbox (id, topic, entity_key, payload)
SELECT g, 'bench', CASE WHEN ?5 > 0 AND g % max(?5, 1) = 0 THEN 'hot' ELSE ?3 || (g % ?4) END,
       CAST('{"n":' || g || ',"pad":"' || printf('%.*c', max(?6 - 15 - length(g), 0), 'x') || '"}' AS BLOB)
  FROM series;
