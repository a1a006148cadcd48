-- What earlier lives of this node have consumed with a journal, and the stamps that were written with it.
-- in:  node text
-- out: id int8, epoch int8, journal int8, opened_by int8, position int8, keyed bool
SELECT c.id, c.epoch, c.journal, coalesce(c.opened_by, 0), coalesce(c.synced_to, 0), c.entity_key IS NOT NULL
  FROM sluice_outbox_consumed c
 WHERE c.journal IS NOT NULL AND left(c.worker, length($1) + 1) = $1 || '/'
 ORDER BY c.id;
