-- What waits, of the five thousand messages with the lowest ids: by topic and type, how many, how many without a key,
-- and the largest payload, whose size is known without reading it.
-- in:  none
-- out: topic text, event_type text, messages int8, keyless int8, largest int8
SELECT ifnull(o.topic, ''), ifnull(o.event_type, ''), count(*), sum(o.keyless), ifnull(max(o.bytes), 0)
  FROM (SELECT s.topic, s.event_type, s.entity_key IS NULL AS keyless, length(s.payload) AS bytes
          FROM sluice_outbox s
         ORDER BY s.id
         LIMIT 5000) o
 GROUP BY 1, 2
 ORDER BY 3 DESC, 1, 2
 LIMIT 200;
