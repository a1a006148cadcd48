-- The segments that hold anything, and whether new messages go there now. How many ids each has, the table knows. Only
-- who may empty them need know.
-- in:  none
-- out: segment int8, current bool
SELECT c.oid::bigint,
       pg_get_expr(c.relpartbound, c.oid) = format('FOR VALUES IN (%L)', (g.given / g.ids) % 4)
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
 CROSS JOIN (SELECT coalesce(pg_sequence_last_value(to_regclass('sluice_outbox_ids')), 0),
                    substring(pg_get_partkeydef('sluice_outbox'::regclass) FROM '/ ([0-9]+)')::bigint) AS g (given, ids)
 WHERE i.inhparent = 'sluice_outbox'::regclass AND pg_relation_size(c.oid) > 0
   AND (pg_has_role(c.relowner, 'usage') OR has_table_privilege(c.oid, 'truncate'));
