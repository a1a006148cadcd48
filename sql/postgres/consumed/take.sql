-- At most once: into the list of what may have been sent, before the first byte leaves. The rows are deleted in the
-- same transaction, in which the claim is ours. An id comes in once. attempts: those
-- before this one.
-- They are looked up as in ordered/keep.
-- in:  id int8[], epoch int8[], worker text, journal int8,
--      opened_by int8, position int8, attempts int8[]
-- out: none
INSERT INTO sluice_outbox_consumed (id, topic, entity_key, event_type, payload, content_type, headers,
                                    idempotency_key, created_at, attempts, epoch, worker, journal, opened_by, synced_to)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, u.attempts, u.epoch, $3, nullif($4, 0), $5, $6
  FROM unnest($1, $2, $7) AS u (id, epoch, attempts)
 CROSS JOIN LATERAL (SELECT m.* FROM sluice_outbox m WHERE m.id = u.id OFFSET 0) o;
