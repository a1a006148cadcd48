-- Note of these registrations whose message is neither in the outbox nor a dead letter that it is gone.
-- in:  first int8, last int8
-- out: none
UPDATE sluice_outbox_idempotency
   SET gone_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
 WHERE gone_at IS NULL AND seq BETWEEN ?1 AND ?2
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox o WHERE o.idempotency_key = sluice_outbox_idempotency.idempotency_key)
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_dead d
                    WHERE d.idempotency_key = sluice_outbox_idempotency.idempotency_key)
   AND NOT EXISTS (SELECT 1 FROM sluice_outbox_consumed c
                    WHERE c.idempotency_key = sluice_outbox_idempotency.idempotency_key);
