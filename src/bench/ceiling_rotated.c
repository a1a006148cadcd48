/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same as bench/ceiling_lanes.c for a table of layout `rotated`: a loop of two plain libpq calls, with the statements in
 * sql/postgres/bench/rotated_*.
 *
 *   read     in the order of the table, from the floor on; no row locks
 *   write    one row, which says that all up to the last one is done; commits by itself
 *
 * It checks no epoch, knows nothing of keys that wait, of times, or of messages that commit late, and empties no segment.
 */
#include "bench/bare_pg.h"

enum { COL_ID };

typedef struct loop {
    const sl_ceiling *o;
    PGconn *pg;
    int connection;
    int64_t floor;
} loop;

static void loop_open(loop *l, const sl_ceiling *o, int connection)
{
    *l = (loop){ .o = o, .pg = sl_bare_open(o), .connection = connection };
    sl_bare_prepare(l->pg, o, "read", "bench/rotated_read", 4,
                    (Oid[]){ OID_INT8, OID_INT8, OID_INT8, OID_INT8 });
    sl_bare_prepare(l->pg, o, "write", "bench/rotated_write", 3,
                    (Oid[]){ OID_INT8, OID_INT8, OID_INT8 });
}

/* One batch; returns how many messages it had. */
static int64_t turn(loop *l)
{
    PGresult *rows = sl_bare_call(l->pg, "read", 4,
                                  (sl_bare_param[]){ { .number = l->floor },
                                                     { .number = l->o->batch },
                                                     { .number = l->o->connections },
                                                     { .number = l->connection } });
    int n = PQntuples(rows);
    sl_bare_read(rows);
    if (n > 0)
        l->floor = sl_bare_int8(rows, n - 1, COL_ID);
    PQclear(rows);
    if (n > 0)
        PQclear(sl_bare_call(l->pg, "write", 3,
                             (sl_bare_param[]){ { .number = l->floor },
                                                { .number = l->o->connections },
                                                { .number = l->connection } }));
    return n;
}

int64_t sl_ceiling_rotated(const sl_ceiling *o, int connection)
{
    loop l;
    int64_t messages = 0;
    loop_open(&l, o, connection);
    sl_ceiling_ready(o);
    for (int64_t n; (n = turn(&l)) > 0;)
        messages += n;
    PQfinish(l.pg);
    return messages;
}
