-- Lease the oldest due messages to one worker, and count the attempt before it is made, so that a
-- message which crashes its worker still runs out of attempts. Each claim of a row raises its
-- epoch: (id, epoch) names this claim and no other. One writer at a time makes it exclusive.
-- in:  batch int8, batch_bytes int8, lease_us int8, worker text
-- out: id int8, epoch int8, attempt int8, created_at int8, topic text, entity_key text,
--      event_type text, content_type text, headers text, payload blob
UPDATE sluice_outbox
   SET leased_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3 / 1000000.0)),
       epoch = epoch + 1,
       attempts = ifnull(attempts, 0) + 1,
       worker = ?4
 WHERE id IN (
    SELECT f.id
      FROM (SELECT d.id, d.sluice_bytes, sum(d.sluice_bytes) OVER (ORDER BY d.id ROWS UNBOUNDED PRECEDING) AS sluice_upto
              FROM (SELECT o.id, ifnull(length(CAST(o.payload AS BLOB)), 0) AS sluice_bytes
                      FROM sluice_outbox o
                     WHERE (o.available_at IS NULL OR julianday(o.available_at) <= julianday('now'))
                       AND (o.leased_until IS NULL OR o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
                     ORDER BY o.id
                     LIMIT ?1) d) f
     WHERE f.sluice_upto - f.sluice_bytes < ?2)
RETURNING id, epoch, attempts,
          CAST(round((julianday(created_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000,
          topic, entity_key, event_type, content_type, headers, payload;
