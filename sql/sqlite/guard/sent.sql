-- Delivered: the rows go, with the statement that checks that their keys are still our turn's. All messages have the same
-- epoch. The keys of the turn are read once: with a look at the table of claims for each message SQLite would also note
-- all messages before it deletes the first.
-- in:  id json, epoch json
-- out: none
DELETE FROM sluice_outbox
 WHERE id IN (SELECT u.value FROM json_each(?1) u)
   AND ifnull('k' || entity_key, 'i' || id)
       IN (SELECT c.claim FROM sluice_outbox_claims c WHERE c.epoch = json_extract(?2, '$[0]'));
