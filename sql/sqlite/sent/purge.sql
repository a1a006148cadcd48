-- Delete some of the delivered messages that were kept for long enough, the oldest first. From the time on where the
-- last batch ended.
-- in:  age_us int8, from_us int8, take int8
-- out: sent_at int8
DELETE FROM sluice_outbox_sent
 WHERE sent_id IN (SELECT s.sent_id
                     FROM sluice_outbox_sent s
                    WHERE s.sent_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', printf('-%.3f seconds', ?1 / 1000000.0))
                      AND s.sent_at >= strftime('%Y-%m-%d %H:%M:%f', ?2 / 1000000.0, 'unixepoch')
                    ORDER BY s.sent_at
                    LIMIT ?3)
RETURNING CAST(round((julianday(sent_at) - 2440587.5) * 86400000.0) AS INTEGER) * 1000;
