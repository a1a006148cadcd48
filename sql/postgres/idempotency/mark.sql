-- Note of these registrations whose message is neither in the outbox nor a dead letter that it is gone. A message moves
-- from one to the other in one transaction, and one statement sees either all of that or nothing. A registration is
-- seen as soon as its message is: the producer commits both.
-- The collation: else "C" would decide, and the index of an adopted table that has another one could not be used.
-- OFFSET: else a plan that was made while a table was empty might read all of it for each page.
-- in:  first int8, last int8
-- out: none
UPDATE sluice_outbox_idempotency i
   SET gone_at = clock_timestamp()
 WHERE i.gone_at IS NULL AND i.seq BETWEEN $1 AND $2
   AND NOT EXISTS (SELECT FROM (SELECT i.idempotency_key COLLATE "default" AS k) r, sluice_outbox o
                    WHERE o.idempotency_key = r.k OFFSET 0)
   AND NOT EXISTS (SELECT FROM sluice_outbox_dead d WHERE d.idempotency_key = i.idempotency_key OFFSET 0)
   AND NOT EXISTS (SELECT FROM sluice_outbox_consumed c WHERE c.idempotency_key = i.idempotency_key OFFSET 0);
