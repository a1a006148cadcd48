-- Delivered: the rows go, with the statement that checks that their keys are still our turn's. It locks
-- the turn, as who takes over does: without that it could delete by what it saw before a takeover,
-- messages that the next holder has read meanwhile and sends again, behind later ones of their key. All
-- messages have the same epoch.
-- in:  id int8[], epoch int8[]
-- out: none
WITH ours AS MATERIALIZED (
    SELECT k.claim
      FROM (SELECT c.keys FROM sluice_outbox_claims c WHERE c.epoch = ($2)[1] FOR UPDATE) t
     CROSS JOIN unnest(t.keys) AS k (claim)
)
DELETE FROM sluice_outbox o
 WHERE o.id = ANY ($1)
   AND CASE WHEN coalesce('k' || o.entity_key, 'i' || o.id) IN (SELECT s.claim FROM ours s) THEN true END;
