/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PostgreSQL alone allows: the statements of sql/postgres/ that `sluice run` uses, in a loop of plain libpq calls. One connection, prepared statements,
 * binary results, one round trip per statement, nothing copied and nothing sent anywhere:
 *
 *   hold transaction   BEGIN, skip_locked/take, settle/sent, COMMIT
 *   hold lease         skip_locked/lease, settle/sent, each in a transaction of its own
 *
 * It must never do less SQL than the program: each row that came is deleted by id and epoch,
 * and a delete that misses a row ends it.
 */
#include "bench/bare_pg.h"

enum { COL_ID, COL_EPOCH };

static PGconn *open_prepared(const sl_ceiling *o)
{
    PGconn *pg = sl_bare_open(o);
    sl_bare_prepare(pg, o, "begin", "tx/begin", 0, NULL);
    sl_bare_prepare(pg, o, "commit", "tx/commit", 0, NULL);
    if (o->lease)
        sl_bare_prepare(pg, o, "take", "skip_locked/lease", 4,
                        (Oid[]){ OID_INT8, OID_INT8, OID_INT8, OID_TEXT });
    else
        sl_bare_prepare(pg, o, "take", "skip_locked/take", 2, (Oid[]){ OID_INT8, OID_INT8 });
    sl_bare_prepare(pg, o, "sent", "settle/sent", 2, (Oid[]){ OID_INT8_ARRAY, OID_INT8_ARRAY });
    return pg;
}

static PGresult *take(PGconn *pg, const sl_ceiling *o)
{
    const sl_bare_param in[] = { { .number = o->batch },
                                 { .number = SL_CEILING_BYTES },
                                 { .number = SL_CEILING_LEASE_US },
                                 { .bytes = "ceiling/1" } };
    return sl_bare_call(pg, "take", o->lease ? 4 : 2, in);
}

static void settle(PGconn *pg, const sl_bare_array *ids, const sl_bare_array *epochs)
{
    sl_bare_delete(pg, "sent", 2, (sl_bare_param[]){ { .array = ids }, { .array = epochs } },
                   ids->n);
}

int64_t sl_ceiling_skip(const sl_ceiling *o, int connection)
{
    sl_bare_array ids, epochs;
    int64_t messages = 0;
    PGconn *pg = open_prepared(o);
    (void)connection;
    sl_bare_array_init(&ids, OID_INT8);
    sl_bare_array_init(&epochs, OID_INT8);
    sl_ceiling_ready(o);
    do {
        if (!o->lease)
            sl_bare_run(pg, "begin");
        PGresult *rows = take(pg, o);
        sl_bare_read(rows);
        sl_bare_array_fill(&ids, rows, COL_ID);
        sl_bare_array_fill(&epochs, rows, COL_EPOCH);
        PQclear(rows);
        if (ids.n > 0)
            settle(pg, &ids, &epochs);
        if (!o->lease)
            sl_bare_run(pg, "commit");
        messages += ids.n;
    } while (ids.n > 0);
    PQfinish(pg);
    sl_bare_array_free(&ids);
    sl_bare_array_free(&epochs);
    return messages;
}
