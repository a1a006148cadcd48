-- All there is of one dead letter.
-- in:  dead_id int8
-- out: dead_id int8, id int8, topic text, entity_key text, event_type text, payload blob,
--      content_type text, headers text, idempotency_key text, created_at text, died_at text,
--      age_us int8, attempts int8, last_error text, epoch int8, unknown bool
SELECT d.dead_id, d.id, d.topic, d.entity_key, d.event_type, d.payload, d.content_type, d.headers, d.idempotency_key,
       ifnull(strftime('%Y-%m-%dT%H:%M:%fZ', d.created_at), d.created_at),
       strftime('%Y-%m-%dT%H:%M:%fZ', d.died_at),
       CAST(round((julianday('now') - julianday(d.died_at)) * 86400000.0) AS INTEGER) * 1000,
       d.attempts, d.last_error, d.epoch, d.unknown
  FROM sluice_outbox_dead d
 WHERE d.dead_id = ?1;
