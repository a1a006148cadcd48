-- Lease the oldest due messages to one worker, and count the attempt before it is made, so that a
-- message which crashes its worker still runs out of attempts. The lease is on the database's
-- clock, and each claim of a row raises its epoch: (id, epoch) names this claim and no other.
-- in:  batch int8, batch_bytes int8, lease_us int8, worker text
-- out: id int8, epoch int8, attempt int8, created_at timestamptz, topic text, entity_key text,
--      event_type text, content_type text, headers jsonb, payload bytea
WITH due AS MATERIALIZED (
    SELECT o.id, coalesce(octet_length(o.payload), 0) AS sluice_bytes
      FROM sluice_outbox o
     WHERE (o.available_at IS NULL OR o.available_at <= clock_timestamp())
       AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp())
     ORDER BY o.id
     LIMIT $1
       FOR UPDATE SKIP LOCKED
)
UPDATE sluice_outbox o
   SET leased_until = clock_timestamp() + $3 * interval '1 microsecond',
       epoch = o.epoch + 1,
       attempts = coalesce(o.attempts, 0) + 1,
       worker = $4
 WHERE o.id = ANY (ARRAY(
    SELECT f.id
      FROM (SELECT d.id, d.sluice_bytes, sum(d.sluice_bytes) OVER (ORDER BY d.id ROWS UNBOUNDED PRECEDING)
                   AS sluice_upto
              FROM due d) f
     WHERE f.sluice_upto - f.sluice_bytes < $2))
RETURNING o.id, o.epoch, o.attempts::bigint, o.created_at, o.topic, o.entity_key, o.event_type,
          o.content_type, o.headers, o.payload;
