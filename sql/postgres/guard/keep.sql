-- Delivered, and to be kept: copy the messages whose keys are still our turn's. The turn is locked as in guard/sent,
-- which follows in the same transaction and deletes these. All messages have the same epoch.
-- They are looked up as in ordered/keep.
-- in:  id int8[], epoch int8[], count int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT k.claim
      FROM (SELECT c.keys FROM sluice_outbox_claims c WHERE c.epoch = ($2)[1] FOR UPDATE) t
     CROSS JOIN unnest(t.keys) AS k (claim)
)
INSERT INTO sluice_outbox_sent (id, topic, entity_key, event_type, payload, content_type, headers,
                                idempotency_key, created_at, attempts, epoch)
SELECT o.id, o.topic, o.entity_key, o.event_type, o.payload, o.content_type, o.headers,
       o.idempotency_key, o.created_at, coalesce(o.attempts, 0) + n.count, ($2)[1]
  FROM unnest($1, $3) AS n (id, count)
 CROSS JOIN LATERAL (SELECT m.* FROM sluice_outbox m WHERE m.id = n.id OFFSET 0) o
 WHERE CASE WHEN coalesce('k' || o.entity_key, 'i' || o.id) IN (SELECT s.claim FROM ours s) THEN true END;
