-- What consumed/orphans has made dead letters of, right before this and in the same transaction: the last ones, as many
-- as it inserted. Not by its condition, which more rows may meet by now.
-- in:  none
-- out: none
DELETE FROM sluice_outbox_consumed
 WHERE id IN (SELECT d.id FROM sluice_outbox_dead d ORDER BY d.dead_id DESC LIMIT changes());
