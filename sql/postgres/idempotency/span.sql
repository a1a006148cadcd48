-- Where registrations begin and end whose message was not yet found to be gone, and a place in between to begin a walk
-- at. 1, 0 and 1: there are none.
-- in:  none
-- out: first int8, last int8, start int8
SELECT coalesce(s.first, 1), coalesce(s.last, 0),
       coalesce(s.first + floor(random() * (s.last - s.first + 1))::bigint, 1)
  FROM (SELECT (SELECT i.seq FROM sluice_outbox_idempotency i WHERE i.gone_at IS NULL ORDER BY i.seq LIMIT 1) AS first,
               (SELECT i.seq FROM sluice_outbox_idempotency i WHERE i.gone_at IS NULL ORDER BY i.seq DESC LIMIT 1) AS last) s;
