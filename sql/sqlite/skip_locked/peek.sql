-- Is there anything to do?
-- in:  none
-- out: any bool
SELECT EXISTS (SELECT 1 FROM sluice_outbox o
                WHERE (o.available_at IS NULL OR julianday(o.available_at) <= julianday('now'))
                  AND (o.leased_until IS NULL OR o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now')));
