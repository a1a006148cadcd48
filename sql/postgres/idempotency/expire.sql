-- Forget some keys whose message has been gone for so long, the oldest first, and say since when. From where the last
-- call ended: beside an old snapshot, what was deleted is still in the index, and would be read again each time.
-- in:  keep_us int8, above_us int8, take int8
-- out: gone_us int8
DELETE FROM sluice_outbox_idempotency i
 WHERE i.idempotency_key = ANY (ARRAY(
       SELECT e.idempotency_key
         FROM sluice_outbox_idempotency e
        WHERE e.gone_at < now() - $1 * interval '1 microsecond'
          AND e.gone_at >= timestamptz 'epoch' + $2 * interval '1 microsecond'
        ORDER BY e.gone_at LIMIT $3
          FOR UPDATE SKIP LOCKED))
RETURNING (extract(EPOCH FROM i.gone_at) * 1000000)::bigint;
