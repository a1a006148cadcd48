-- Is anything in their table?
-- in:  none
-- out: any bool
SELECT EXISTS (SELECT 1 FROM sluice_source);
