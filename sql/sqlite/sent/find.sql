-- The next kept messages that match, by id, from the one behind (`above`, `above_sent`) on; no more than `take`. Their
-- bytes tell how many of them fit into a transaction. Of each filter, NULL is anything.
-- in:  topic text, prefix text, key text, since_us int8, until_us int8, above int8, above_sent int8, take int8
-- out: sent_id int8, id int8, bytes int8, entity_key text
SELECT s.sent_id, s.id, ifnull(length(s.payload), 0), s.entity_key
  FROM sluice_outbox_sent s
 WHERE (?1 IS NULL OR s.topic = ?1)
   AND (?2 IS NULL OR substr(ifnull(s.topic, ''), 1, length(?2)) = ?2)
   AND (?3 IS NULL OR s.entity_key = ?3)
   AND (?4 IS NULL OR julianday(s.sent_at) >= julianday('now') - ?4 / 86400000000.0)
   AND (?5 IS NULL OR julianday(s.sent_at) <= julianday('now') - ?5 / 86400000000.0)
   AND (s.id, s.sent_id) > (?6, ?7)
 ORDER BY s.id, s.sent_id
 LIMIT ?8;
