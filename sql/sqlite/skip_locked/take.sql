-- The oldest due messages. BEGIN IMMEDIATE has locked the whole file: nobody else takes or pushes
-- until the transaction ends. What goes beyond batch_bytes is left for the next turn; the first
-- message always fits.
-- in:  batch int8, batch_bytes int8
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob
SELECT f.id, f.epoch, ifnull(f.attempts, 0) + 1,
       CAST(round((julianday(f.created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
       f.topic, f.entity_key, f.event_type, f.content_type, f.headers, f.payload
  FROM (SELECT d.*, sum(ifnull(length(CAST(d.payload AS BLOB)), 0))
                    OVER (ORDER BY d.id ROWS UNBOUNDED PRECEDING) AS sluice_upto
          FROM (SELECT o.id, o.epoch, o.attempts, o.created_at, o.topic, o.entity_key, o.event_type,
                       o.content_type, o.headers, o.payload
                  FROM sluice_outbox o
                 WHERE (o.available_at IS NULL OR julianday(o.available_at) <= julianday('now'))
                   AND (o.leased_until IS NULL OR o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
                 ORDER BY o.id
                 LIMIT ?1) d) f
 WHERE f.sluice_upto - ifnull(length(CAST(f.payload AS BLOB)), 0) < ?2
 ORDER BY f.id;
