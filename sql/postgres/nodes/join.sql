-- A node is born, unless one lives that shares the table in another way: neither would keep the
-- promises of its strategy. Nor while a key is still leased by guard.
-- in:  session int8, node text, strategy text, assign text, workers int8, lease_us int8
-- out: none
INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, workers, born, lives_until)
SELECT $1, $2, $3, $4, $5::integer, nextval('sluice_outbox_epoch'),
       clock_timestamp() + $6 * interval '1 microsecond'
 WHERE NOT EXISTS (SELECT FROM sluice_outbox_nodes n WHERE n.strategy <> $3)
   AND ($3 = 'guard'
        OR NOT EXISTS (SELECT FROM sluice_outbox_claims c WHERE c.ends_at > clock_timestamp()));
