-- Keys that are due, locked now, and wait for nothing are as any other. But not those which a turn has, over
-- or not: it may be about to hold a message of such a key. The collation: as in lanes/due.
-- in:  claim text[], turns int8
-- out: none
DELETE FROM sluice_outbox_keys k
 WHERE k.entity_key = ANY (ARRAY(SELECT substr(u.sluice_claim, 2)
                                   FROM unnest($1) AS u (sluice_claim)
                                  WHERE left(u.sluice_claim, 1) = 'k'))
   AND CASE WHEN k.due_at <= statement_timestamp() THEN true END
   AND CASE WHEN (SELECT true
                    FROM (SELECT k.entity_key COLLATE "default" AS entity_key) n, sluice_outbox o
                   WHERE o.held AND NOT o.delayed AND o.entity_key = n.entity_key LIMIT 1)
            THEN false ELSE true END
   AND 'k' || k.entity_key NOT IN (SELECT x.claim
                                     FROM sluice_outbox_claims c CROSS JOIN unnest(c.keys) AS x (claim)
                                    WHERE c.epoch >= $2);
