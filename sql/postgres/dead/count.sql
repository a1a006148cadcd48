-- How many dead letters match, and how many there are. Of each filter, NULL is anything.
-- in:  topic text, prefix text, key text, older_us int8, newer_us int8, error text,
--      unknown bool
-- out: matching int8, total int8
SELECT count(*) FILTER (WHERE
       ($1::text IS NULL OR d.topic = $1)
   AND ($2::text IS NULL OR starts_with(coalesce(d.topic, ''), $2))
   AND ($3::text IS NULL OR d.entity_key = $3)
   AND ($4::bigint IS NULL OR d.died_at < now() - $4 * interval '1 microsecond')
   AND ($5::bigint IS NULL OR d.died_at > now() - $5 * interval '1 microsecond')
   AND ($6::text IS NULL OR strpos(d.last_error, $6) > 0)
   AND ($7::boolean IS NULL OR d.unknown = $7)),
       count(*)
  FROM sluice_outbox_dead d;
