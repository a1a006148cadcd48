-- Is there anything beyond the end of a stretch (lanes/take_stretch), of whatever lane, held or not? So it is one
-- look at the table, whatever it holds; NOT INDEXED, since with statistics a walk through all keys may seem as good.
-- in:  upto int8
-- out: any bool
SELECT EXISTS (SELECT 1 FROM sluice_outbox o NOT INDEXED WHERE o.id >= ?1);
