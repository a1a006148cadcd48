-- Never to be delivered: copy the messages to the dead letters. The rows are locked, so that the
-- delete which follows in the same transaction (settle/sent) removes exactly these.
-- `count` is 1 where the attempt was not counted before.
-- They are looked up as in ordered/keep.
-- in:  id int8[], epoch int8[], reason text[], count int8[]
-- out: none
INSERT INTO sluice_outbox_dead (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, last_error, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, coalesce(o.attempts, 0) + u.count, u.reason, o.epoch
  FROM unnest($1, $2, $3, $4) AS u (id, epoch, reason, count)
 CROSS JOIN LATERAL (SELECT m.* FROM sluice_outbox m WHERE m.id = u.id AND m.epoch = u.epoch OFFSET 0 FOR UPDATE) o;
