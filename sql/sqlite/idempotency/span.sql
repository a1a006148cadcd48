-- Where registrations begin and end whose message was not yet found to be gone, and a place in between to begin a walk
-- at. 1, 0 and 1: there are none.
-- in:  none
-- out: first int8, last int8, start int8
SELECT ifnull(s.first, 1), ifnull(s.last, 0),
       ifnull(s.first + (random() & 9223372036854775807) % (s.last - s.first + 1), 1)
  FROM (SELECT (SELECT min(i.seq) FROM sluice_outbox_idempotency i WHERE i.gone_at IS NULL) AS first,
               (SELECT max(i.seq) FROM sluice_outbox_idempotency i WHERE i.gone_at IS NULL) AS last) s;
