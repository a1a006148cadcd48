-- Is there anything to do?
-- in:  none
-- out: any bool
SELECT EXISTS (SELECT FROM sluice_outbox o
                WHERE (o.available_at IS NULL OR o.available_at <= clock_timestamp())
                  AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp()));
