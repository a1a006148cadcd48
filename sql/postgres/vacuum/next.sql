-- After how many more dead rows the next vacuum of the outbox is worth its while: half of those that live, and as many as
-- this one had to leave, since someone may still see them (sign 1). Before the first one those that are there have not
-- been tried yet, and count (sign -1). Of a large backlog, nearly as many as live: it goes through
-- all the indexes each time, and who delivers passes by what has gone without it. How many live is what the last
-- vacuum counted: what sessions report is up to a second old, in which a hundred thousand may have come or gone.
-- in:  sign int8
-- out: rows int8
SELECT greatest(l.live / 2, l.live - 20000) + $1 * pg_stat_get_dead_tuples('sluice_outbox'::regclass)
  FROM (SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c WHERE c.oid = 'sluice_outbox'::regclass) AS l (live);
