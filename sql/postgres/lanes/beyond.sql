-- Is there anything beyond the end of a stretch (lanes/take_stretch), of whatever lane, held or not? So it is one
-- look at the index, whatever the table holds.
-- in:  upto int8
-- out: any bool
SELECT EXISTS (SELECT FROM sluice_outbox o WHERE o.id >= $1);
