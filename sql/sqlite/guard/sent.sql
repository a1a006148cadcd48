-- Delivered: the row goes, with the statement that checks that its key is still our turn's.
-- in:  id int8[], epoch int8[]
-- out: none
DELETE FROM sluice_outbox
 WHERE id = ?1
   AND ?2 = (SELECT c.epoch FROM sluice_outbox_claims c
              WHERE c.claim = ifnull('k' || sluice_outbox.entity_key, 'i' || sluice_outbox.id));
