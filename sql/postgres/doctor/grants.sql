-- What a node of this strategy and this delivery needs, and whether this role has it; `keeps` is 1 where delivered
-- messages are kept. Tables that are not there are left out; those of layout rotated have segments, which are looked at
-- and emptied one by one.
-- in:  strategy text, keeps int8, delivery text, fence int8
-- out: role text, privilege text, object text, granted bool
WITH needed (privilege, object, only_for) AS (
    VALUES ('select', 'sluice_outbox_meta', ''),
           ('select', 'sluice_outbox', ''), ('update', 'sluice_outbox', ''), ('delete', 'sluice_outbox', ''),
           ('insert', 'sluice_outbox_dead', ''),
           ('select', 'sluice_outbox_sent', 'keeps'), ('insert', 'sluice_outbox_sent', 'keeps'),
           ('update', 'sluice_outbox_sent', 'keeps'), ('delete', 'sluice_outbox_sent', 'keeps'),
           ('select', 'sluice_outbox_keys', ''), ('insert', 'sluice_outbox_keys', ''),
           ('update', 'sluice_outbox_keys', ''), ('delete', 'sluice_outbox_keys', ''),
           ('select', 'sluice_outbox_nodes', ''), ('insert', 'sluice_outbox_nodes', ''),
           ('update', 'sluice_outbox_nodes', ''), ('delete', 'sluice_outbox_nodes', ''),
           ('select', 'sluice_outbox_claims', ''), ('insert', 'sluice_outbox_claims', 'guard'),
           ('update', 'sluice_outbox_claims', 'guard'), ('delete', 'sluice_outbox_claims', ''),
           ('select', 'sluice_outbox_positions', ''),
           ('select', 'sluice_outbox_done', 'rotated'), ('insert', 'sluice_outbox_done', 'rotated'),
           ('delete', 'sluice_outbox_done', 'rotated'),
           ('select', 'sluice_outbox_lanes', ''), ('update', 'sluice_outbox_lanes', ''),
           ('select', 'sluice_outbox_idempotency', ''), ('update', 'sluice_outbox_idempotency', ''),
           ('delete', 'sluice_outbox_idempotency', ''), ('insert', 'sluice_outbox', 'at-most-once'),
           ('select', 'sluice_outbox_consumed', 'at-most-once'), ('insert', 'sluice_outbox_consumed', 'at-most-once'),
           ('update', 'sluice_outbox_consumed', 'at-most-once'), ('delete', 'sluice_outbox_consumed', 'at-most-once'),
           ('select', 'sluice_outbox_fences', 'fence'), ('insert', 'sluice_outbox_fences', 'fence'),
           ('update', 'sluice_outbox_fences', 'fence'), ('delete', 'sluice_outbox_fences', 'fence')
)
SELECT current_user::text, upper(n.privilege), n.object, has_table_privilege(to_regclass(n.object), n.privilege)
  FROM needed n
 WHERE n.only_for IN ('', $1, CASE WHEN $2 = 1 THEN 'keeps' END, $3, CASE WHEN $4 = 1 THEN 'fence' END,
                      CASE WHEN to_regclass('sluice_outbox_s0') IS NOT NULL THEN 'rotated' END)
   AND to_regclass(n.object) IS NOT NULL
UNION ALL
-- One column of the dead letters and of what was consumed; what it is called here, is the name of the only member of k.
SELECT current_user::text, upper('select') || format(' (%I)', c.name), t.name,
       has_column_privilege(to_regclass(t.name), c.name, 'select')
  FROM (SELECT 1 AS idempotency_key) k, jsonb_object_keys(to_jsonb(k)) c (name),
       (VALUES ('sluice_outbox_dead'), ('sluice_outbox_consumed')) t (name)
 WHERE to_regclass(t.name) IS NOT NULL
UNION ALL
SELECT current_user::text, upper('usage'), 'SEQUENCE ' || 'sluice_outbox_epoch',
       has_sequence_privilege(to_regclass('sluice_outbox_epoch'), 'usage')
 WHERE to_regclass('sluice_outbox_epoch') IS NOT NULL
UNION ALL
-- Layout rotated: where ids come from, and what is emptied as a whole.
SELECT current_user::text, upper('select'), 'SEQUENCE ' || 'sluice_outbox_ids',
       has_sequence_privilege(to_regclass('sluice_outbox_ids'), 'select')
 WHERE to_regclass('sluice_outbox_ids') IS NOT NULL
UNION ALL
(SELECT current_user::text, upper(p.privilege), i.inhrelid::regclass::text, has_table_privilege(i.inhrelid, p.privilege)
   FROM pg_inherits i, (VALUES ('select'), ('delete'), ('truncate')) p (privilege)
  WHERE i.inhparent = to_regclass('sluice_outbox') AND to_regclass('sluice_outbox_ids') IS NOT NULL
  ORDER BY 3, 2);
