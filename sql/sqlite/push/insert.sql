-- Insert a message; run once for each. available_at in microseconds of Unix time, 0 for now.
-- in:  topic text[], entity_key text[], event_type text[], payload blob[], content_type text[],
--      headers text[], idempotency_key text[], available_us int8[]
-- out: none
INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, content_type, headers,
                           idempotency_key, available_at)
VALUES (?1, ?2, ifnull(?3, ''), ?4, ifnull(?5, 'application/json'), ?6, ?7,
        CASE WHEN ?8 = 0 THEN strftime('%Y-%m-%d %H:%M:%f', 'now')
             ELSE strftime('%Y-%m-%d %H:%M:%f', ?8 / 1000000.0, 'unixepoch') END)
ON CONFLICT DO NOTHING;
