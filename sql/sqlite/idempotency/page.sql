-- The next registrations from here to there whose message was not yet found to be gone: how many, and the last of them.
-- in:  first int8, last int8, take int8
-- out: count int8, upto int8
SELECT count(*), ifnull(max(p.seq), 0)
  FROM (SELECT i.seq FROM sluice_outbox_idempotency i
         WHERE i.gone_at IS NULL AND i.seq BETWEEN ?1 AND ?2
         ORDER BY i.seq LIMIT ?3) p;
