-- Delivered: the row goes. Only while the claim is still ours. The CASE keeps the planner from making
-- a join of it, whose order would depend on what the table was like when it was planned.
-- in:  id int8[], epoch int8[]
-- out: none
DELETE FROM sluice_outbox o
 WHERE o.id = ANY ($1)
   AND CASE WHEN (o.id, o.epoch) IN (SELECT u.id, u.epoch FROM unnest($1, $2) AS u (id, epoch))
            THEN true END;
