-- The dead letters that match, the newest first, without their payloads; ages on the database's clock.
-- in:  topic text, prefix text, key text, older_us int8, newer_us int8, error text,
--      unknown bool, take int8
-- out: dead_id int8, id int8, topic text, entity_key text, event_type text, attempts int8,
--      died_at text, age_us int8, last_error text, bytes int8, unknown bool
SELECT d.dead_id, d.id, d.topic, d.entity_key, d.event_type, d.attempts,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.died_at),
       CAST(round((julianday('now') - julianday(d.died_at)) * 86400000.0) AS INTEGER) * 1000,
       d.last_error, ifnull(length(d.payload), 0), d.unknown
  FROM sluice_outbox_dead d
 WHERE (?1 IS NULL OR d.topic = ?1)
   AND (?2 IS NULL OR substr(ifnull(d.topic, ''), 1, length(?2)) = ?2)
   AND (?3 IS NULL OR d.entity_key = ?3)
   AND (?4 IS NULL OR julianday(d.died_at) < julianday('now') - ?4 / 86400000000.0)
   AND (?5 IS NULL OR julianday(d.died_at) > julianday('now') - ?5 / 86400000000.0)
   AND (?6 IS NULL OR instr(d.last_error, ?6) > 0)
   AND (?7 IS NULL OR d.unknown = ?7)
 ORDER BY d.dead_id DESC
 LIMIT ?8;
