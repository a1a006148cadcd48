-- Look at a window of the oldest messages. The write transaction is the lock. state 0: another has the
-- key, 1: it is ours, 2: there was no more room in the batch. With leases = 1 a key that is leased
-- (guard) is another's; nobody else can have one, so that `others` says nothing new. Each look begins at the floor, so that of each key it sees all that is there up
-- to the end of the window.
-- in:  floor int8, window int8, room int8, room_bytes int8, leases int8, others text
-- out: claim text, id int8, state int8
SELECT w.sluice_claim, w.id,
       CASE WHEN w.sluice_others THEN 0 WHEN w.sluice_n > ?3 OR w.sluice_before >= ?4 THEN 2 ELSE 1 END
  FROM (SELECT c.*,
               sum(NOT c.sluice_others) OVER upto AS sluice_n,
               sum(CASE WHEN c.sluice_others THEN 0 ELSE c.sluice_bytes END) OVER upto - c.sluice_bytes
               AS sluice_before
          FROM (SELECT n.*,
                       ?5 > 0 AND EXISTS (SELECT 1 FROM sluice_outbox_claims l
                                           WHERE l.claim = n.sluice_claim
                                             AND l.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now')) AS sluice_others
                  FROM (SELECT o.id, ifnull('k' || o.entity_key, 'i' || o.id) AS sluice_claim,
                               ifnull(length(CAST(o.payload AS BLOB)), 0) AS sluice_bytes
                          FROM sluice_outbox o
                         WHERE o.id >= ?1 AND o.held = 0 AND ?6 IS NOT NULL
                         ORDER BY o.id
                         LIMIT ?2) n) c
        WINDOW upto AS (ORDER BY c.id ROWS UNBOUNDED PRECEDING)) w
 ORDER BY w.id;
