-- A key that is blocked or parked, its first message, and who may have that in flight. Nobody has, where its own time
-- has not come (`later`): that was written by who had it, and from then on it was taken by nobody.
--   worker    holds it by a lease of skip-locked
--   claimer   holds the key by strategy guard
--   node      owned the lane when the key was parked, and owns it still, or owns it and the key is not parked
--   doubt     that node may have it in flight from before: it is not held yet, which the node's next turn would
--             change; or it was held already, and has not been settled since
-- in:  key text
-- out: parked bool, by_hand bool, id int8, later bool, doubt bool, worker text, claimer text,
--      node text
SELECT k.due_at = 'infinity', k.fence IS NOT NULL, o.id, coalesce(o.available_at > clock_timestamp(), false),
       coalesce(NOT o.held OR (o.id = k.doubt AND coalesce(o.attempts, 0) = k.tried), false),
       CASE WHEN o.leased_until > clock_timestamp() THEN coalesce(o.worker, '') END,
       (SELECT c.held_by FROM sluice_outbox_claims c WHERE 'k' || k.entity_key = ANY (c.keys) LIMIT 1),
       (SELECT n.node
          FROM sluice_outbox_lanes l
          JOIN sluice_outbox_nodes n ON n.session = l.owner
         WHERE l.lane = k.lane AND l.epoch < coalesce(k.fence, 9223372036854775807))
  FROM sluice_outbox_keys k
  LEFT JOIN sluice_outbox o
    ON o.id = coalesce((SELECT m.id FROM sluice_outbox m
                         WHERE m.held AND NOT m.delayed AND m.entity_key = k.entity_key ORDER BY m.id LIMIT 1),
                       (SELECT m.id FROM sluice_outbox m
                         WHERE m.lane = k.lane AND NOT m.held AND NOT m.delayed AND m.entity_key = k.entity_key
                           AND m.id >= coalesce((SELECT p.floor FROM sluice_outbox_positions p WHERE p.lane = k.lane), 0)
                         ORDER BY m.id LIMIT 1))
 WHERE k.entity_key = $1;
