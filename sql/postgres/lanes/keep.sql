-- Delivered, and to be kept: copy the messages of the lanes whose epoch is still ours. The lanes are locked as in
-- lanes/sent, which follows in the same transaction and deletes these.
-- They are looked up as in ordered/keep.
-- in:  id int8[], epoch int8[], count int8[], lane int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT l.lane, l.epoch
      FROM sluice_outbox_lanes l
     WHERE l.lane = ANY ($4) AND (l.lane, l.epoch) IN (SELECT u.lane, u.epoch FROM unnest($4, $2) AS u (lane, epoch))
     ORDER BY l.lane
       FOR SHARE OF l
)
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, coalesce(o.attempts, 0) + n.count,
       (SELECT s.epoch FROM ours s WHERE s.lane = o.lane)
  FROM unnest($1, $3) AS n (id, count)
 CROSS JOIN LATERAL (SELECT m.* FROM sluice_outbox m WHERE m.id = n.id OFFSET 0) o
 WHERE CASE WHEN o.lane IN (SELECT s.lane FROM ours s) THEN true END;
