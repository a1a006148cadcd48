-- The rows that are in their table already, as if they were inserted now, by time where there is a column for it, else as
-- they lie. In the transaction that made the trigger: until it ends nobody inserts.
INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, content_type, headers, created_at)
SELECT sluice_values
  FROM sluice_source AS new
 ORDER BY sluice_order;
