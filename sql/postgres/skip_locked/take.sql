-- Lock the oldest due messages until the transaction ends. Rows that a rival has locked are
-- skipped, so that two workers never wait for each other. The CTE is materialised: inside a plain
-- sub-select the planner may run the LIMIT again and lock too many rows. What goes beyond
-- batch_bytes is locked but left for the next turn; the first message always fits.
-- in:  batch int8, batch_bytes int8
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea
WITH due AS MATERIALIZED (
    SELECT o.id, o.epoch, o.attempts, o.created_at, o.topic, o.entity_key, o.event_type,
           o.content_type, o.headers, o.payload, coalesce(octet_length(o.payload), 0) AS sluice_bytes
      FROM sluice_outbox o
     WHERE (o.available_at IS NULL OR o.available_at <= clock_timestamp())
       AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp())
     ORDER BY o.id
     LIMIT $1
       FOR UPDATE SKIP LOCKED
)
SELECT f.id, f.epoch, coalesce(f.attempts, 0)::bigint + 1, f.created_at, f.topic, f.entity_key, f.event_type,
       f.content_type, f.headers, f.payload
  FROM (SELECT d.*, sum(d.sluice_bytes) OVER (ORDER BY d.id ROWS UNBOUNDED PRECEDING) AS sluice_upto
          FROM due d) f
 WHERE f.sluice_upto - f.sluice_bytes < $2
 ORDER BY f.id;
