-- The next dead letters that match, by dead_id, from the one behind `above` on; no more than `take`. Their
-- bytes tell how many of them fit into a transaction.
-- in:  topic text, prefix text, key text, older_us int8, newer_us int8, error text,
--      unknown bool, above int8, take int8
-- out: dead_id int8, id int8, bytes int8, unknown bool
SELECT d.dead_id, d.id, ifnull(length(d.payload), 0), d.unknown
  FROM sluice_outbox_dead d
 WHERE (?1 IS NULL OR d.topic = ?1)
   AND (?2 IS NULL OR substr(ifnull(d.topic, ''), 1, length(?2)) = ?2)
   AND (?3 IS NULL OR d.entity_key = ?3)
   AND (?4 IS NULL OR julianday(d.died_at) < julianday('now') - ?4 / 86400000000.0)
   AND (?5 IS NULL OR julianday(d.died_at) > julianday('now') - ?5 / 86400000000.0)
   AND (?6 IS NULL OR instr(d.last_error, ?6) > 0)
   AND (?7 IS NULL OR d.unknown = ?7)
   AND d.dead_id > ?8
 ORDER BY d.dead_id
 LIMIT ?9;
