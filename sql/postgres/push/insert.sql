-- Insert many messages at once, in order. No RETURNING: a producer's role needs INSERT, no more.
-- available_at in microseconds of Unix time, 0 for now.
-- in:  topic text[], entity_key text[], event_type text[], payload bytea[], content_type text[],
--      headers text[], idempotency_key text[], available_us int8[]
-- out: none
INSERT INTO sluice_outbox (topic, entity_key, event_type, payload, content_type, headers,
                           idempotency_key, available_at)
SELECT u.a, u.b, coalesce(u.c, ''), u.d, coalesce(u.e, 'application/json'), u.f::jsonb, u.g,
       CASE WHEN u.h = 0 THEN now()
            ELSE timestamptz 'epoch' + u.h * interval '1 microsecond' END
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS u (a, b, c, d, e, f, g, h)
ON CONFLICT DO NOTHING;
