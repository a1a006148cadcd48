-- How many dead letters match, and how many there are. Of each filter, NULL is anything.
-- in:  topic text, prefix text, key text, older_us int8, newer_us int8, error text,
--      unknown bool
-- out: matching int8, total int8
SELECT count(*) FILTER (WHERE
       (?1 IS NULL OR d.topic = ?1)
   AND (?2 IS NULL OR substr(ifnull(d.topic, ''), 1, length(?2)) = ?2)
   AND (?3 IS NULL OR d.entity_key = ?3)
   AND (?4 IS NULL OR julianday(d.died_at) < julianday('now') - ?4 / 86400000000.0)
   AND (?5 IS NULL OR julianday(d.died_at) > julianday('now') - ?5 / 86400000000.0)
   AND (?6 IS NULL OR instr(d.last_error, ?6) > 0)
   AND (?7 IS NULL OR d.unknown = ?7)),
       count(*)
  FROM sluice_outbox_dead d;
