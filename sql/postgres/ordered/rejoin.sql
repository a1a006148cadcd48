-- Delayed messages whose time has come while their keys wait: among the other held ones of the key, in order. Only
-- where the key does wait: it leads to them from now on.
-- in:  id int8[]
-- out: none
UPDATE sluice_outbox o
   SET delayed = false
 WHERE o.id = ANY ($1)
   AND CASE WHEN (SELECT true FROM sluice_outbox_keys k WHERE k.entity_key = o.entity_key) THEN true END;
