-- A node is born, unless one lives that shares the table in another way: neither would keep the
-- promises of its strategy. Nor while a key is still leased by guard, or by advisory to one of another strategy.
-- epoch/next has run before.
-- in:  session int8, node text, strategy text, assign text, workers int8, lease_us int8
-- out: none
INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, workers, born, lives_until)
SELECT ?1, ?2, ?3, ?4, ?5, (SELECT CAST(m.value AS INTEGER) FROM sluice_outbox_meta m WHERE m.name = 'epoch'),
       strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?6 / 1000000.0))
 WHERE NOT EXISTS (SELECT 1 FROM sluice_outbox_nodes n WHERE n.strategy <> ?3)
   AND (?3 = 'guard'
        OR NOT EXISTS (SELECT 1 FROM sluice_outbox_claims c
                        WHERE c.ends_at > strftime('%Y-%m-%d %H:%M:%f', 'now') AND (c.holder <> 0 OR ?3 <> 'advisory')));
