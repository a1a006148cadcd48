-- Look at a window of the oldest messages, and try to lock the key of each, the oldest first; a lock
-- that we have is had again. Not one more is tried than there is room for in a batch, so that no key is
-- locked and then left. state 0: another has the key, 1: it is ours, 2: there was no more room. A key
-- that another had may be free when its next message comes: it is not ours all the same, since it
-- would come without its head. The caller sees to that.
-- The lock is 64 bits of a hash of 'k' and the key, or of 'i' and the id of a message without one,
-- seeded with the table so that other tables and other users of such locks do not meet it.
-- Another's, without trying, are those of `others`, a list with \x01 between them, which were so in an
-- earlier look of this turn, and with leases = 1 those that are leased (guard): they take no room,
-- however many messages they have. The time of the statement is one for all rows: by the clock, a lease
-- that ends meanwhile would hide the first messages of a key and show the next.
-- Only a later statement sees what the last holder of a lock has committed: nothing is read here but
-- ids. Each look begins at the floor, so that of each key it sees all that is there up to the end of
-- the window.
-- in:  floor int8, window int8, room int8, room_bytes int8, leases int8, others text
-- out: claim text, id int8, state int8
SELECT w.sluice_claim, w.id,
       CASE WHEN w.sluice_others THEN 0
            WHEN w.sluice_n > $3 OR w.sluice_before >= $4 THEN 2
            WHEN pg_try_advisory_xact_lock(
                     hashtextextended(w.sluice_claim, 'sluice_outbox'::regclass::oid::bigint)) THEN 1
            ELSE 0 END::bigint
  FROM (SELECT c.id, c.sluice_claim, c.sluice_bytes, c.sluice_others,
               count(*) FILTER (WHERE c.sluice_others IS NOT TRUE) OVER upto AS sluice_n,
               sum(CASE WHEN c.sluice_others THEN 0 ELSE c.sluice_bytes END) OVER upto - c.sluice_bytes
               AS sluice_before
          FROM (SELECT n.id, n.sluice_claim, n.sluice_bytes,
                       CASE WHEN n.sluice_claim COLLATE "C" IN (SELECT unnest(string_to_array($6, E'\x01'))) THEN true
                            WHEN $5 > 0 THEN (SELECT true FROM sluice_outbox_claims l
                                               WHERE l.claim = n.sluice_claim AND l.ends_at > statement_timestamp())
                       END AS sluice_others
                  FROM (SELECT o.id, coalesce('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
                               coalesce(octet_length(o.payload), 0) AS sluice_bytes
                          FROM sluice_outbox o
                         WHERE o.id >= $1 AND NOT o.held
                         ORDER BY o.id
                         LIMIT $2) n) c
        WINDOW upto AS (ORDER BY c.id ROWS UNBOUNDED PRECEDING)) w
 ORDER BY w.id;
