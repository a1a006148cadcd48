-- Forget some keys whose message has been gone for so long, the oldest first.
-- in:  keep_us int8, above_us int8, take int8
-- out: gone_us int8
DELETE FROM sluice_outbox_idempotency
 WHERE seq IN (SELECT i.seq FROM sluice_outbox_idempotency i
                WHERE i.gone_at < strftime('%Y-%m-%d %H:%M:%f', 'now', printf('-%.3f seconds', ?1 / 1000000.0))
                ORDER BY i.gone_at LIMIT ?3)
RETURNING ?2;
