-- One message for each of so many keys that has failed, and is tried again in an hour.
-- in:  first int8, keys int8, prefix text
-- out: none
WITH RECURSIVE series (g) AS (SELECT ?1 UNION ALL SELECT g + 1 FROM series WHERE g < ?1 + ?2 - 1)
INSERT INTO sluice_outbox (id, topic, entity_key, payload, attempts, last_error, available_at)
SELECT g, 'bench', ?3 || (g % ?2), '{}', 1, 'bench: refused', strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour')
  FROM series;
