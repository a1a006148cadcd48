-- Delete some of the delivered messages that were kept for long enough, the oldest first. From the time on where the
-- last batch ended: what it has deleted would be passed by again, row by row, while an old snapshot keeps it alive.
-- in:  age_us int8, from_us int8, take int8
-- out: sent_at timestamptz
DELETE FROM sluice_outbox_sent d
 WHERE d.ctid = ANY (ARRAY(SELECT s.ctid
                             FROM sluice_outbox_sent s
                            WHERE s.sent_at <= statement_timestamp() - $1 * interval '1 microsecond'
                              AND s.sent_at >= timestamptz 'epoch' + $2 * interval '1 microsecond'
                            ORDER BY s.sent_at
                            LIMIT $3
                              FOR UPDATE SKIP LOCKED))
RETURNING d.sent_at;
