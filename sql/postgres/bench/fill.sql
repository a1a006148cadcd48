-- Messages with ids from `first` on, whose keys take turns; each hot-th one is of one key (0: none).
-- in:  first int8, rows int8, prefix text, keys int8, hot int8, bytes int8
-- out: none
INSERT INTO sluice_outbox (id, topic, entity_key, payload) OVERRIDING SYSTEM VALUE
SELECT g, 'bench', CASE WHEN $5 > 0 AND g % greatest($5, 1) = 0 THEN 'hot' ELSE $3 || g % $4 END,
       convert_to('{"n":' || g || ',"pad":"' || repeat('x', greatest($6 - 15 - length(g::text), 0)::integer) || '"}', 'UTF8')
  FROM generate_series($1, $1 + $2 - 1) g;
