-- Delayed messages whose time has come, but for keys that another has. One message of each key comes before the second
-- of any, so that one key does not hide the others. The write transaction is the lock.
-- in:  take int8, turns int8
-- out: claim text, id int8
SELECT d.sluice_claim, d.sluice_id
  FROM (SELECT 'k' || o.entity_key AS sluice_claim, o.id AS sluice_id, julianday(o.available_at) AS sluice_from
          FROM sluice_outbox o INDEXED BY sluice_outbox_ix_delayed
         WHERE o.delayed = 1 AND o.entity_key IS NOT NULL AND julianday(o.available_at) <= julianday('now')
           AND ifnull(o.leased_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'), 1)
           AND NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c
                            WHERE c.claim = 'k' || o.entity_key AND c.epoch >= ?2
                              AND c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now'))
         ORDER BY julianday(o.available_at), o.id
         LIMIT ?1 * 32) d
 ORDER BY row_number() OVER (PARTITION BY d.sluice_claim ORDER BY d.sluice_from, d.sluice_id), d.sluice_from
 LIMIT ?1;
