/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PostgreSQL alone allows: the statements of sql/postgres/ that `sluice run` uses, read
 * from the same files, in a loop of plain libpq calls. One connection, prepared statements,
 * binary results, one round trip per statement, nothing copied and nothing sent anywhere:
 *
 *   hold transaction   BEGIN, skip_locked/take, settle/sent, COMMIT
 *   hold lease         skip_locked/lease, settle/sent, each in a transaction of its own
 *
 * It must never do less SQL than the program: each row that came is deleted by id and epoch,
 * and a delete that misses a row ends it.
 */
#include "ceiling_pg.h"

enum { COL_ID, COL_EPOCH };

static PGconn *open_prepared(const bench_options *o)
{
    PGconn *pg = pg_open(o);
    pg_prepare(pg, o, "begin", "tx/begin", 0, NULL);
    pg_prepare(pg, o, "commit", "tx/commit", 0, NULL);
    if (o->lease)
        pg_prepare(pg, o, "take", "skip_locked/lease", 4,
                   (Oid[]){ OID_INT8, OID_INT8, OID_INT8, OID_TEXT });
    else
        pg_prepare(pg, o, "take", "skip_locked/take", 2, (Oid[]){ OID_INT8, OID_INT8 });
    pg_prepare(pg, o, "sent", "settle/sent", 2, (Oid[]){ OID_INT8_ARRAY, OID_INT8_ARRAY });
    return pg;
}

static PGresult *take(PGconn *pg, const bench_options *o)
{
    const pg_param in[] = { { .number = o->batch },
                            { .number = BENCH_BATCH_BYTES },
                            { .number = BENCH_LEASE_US },
                            { .bytes = "ceiling/1" } };
    return pg_call(pg, "take", o->lease ? 4 : 2, in);
}

static void settle(PGconn *pg, const pg_array *ids, const pg_array *epochs)
{
    pg_delete(pg, "sent", 2, (pg_param[]){ { .array = ids }, { .array = epochs } }, ids->n);
}

static int64_t drain(const bench_options *o, int connection)
{
    pg_array ids, epochs;
    int64_t messages = 0;
    PGconn *pg = open_prepared(o);
    (void)connection;
    pg_array_init(&ids, OID_INT8);
    pg_array_init(&epochs, OID_INT8);
    bench_ready();
    do {
        if (!o->lease)
            pg_run(pg, "begin");
        PGresult *rows = take(pg, o);
        pg_read(rows);
        pg_array_fill(&ids, rows, COL_ID);
        pg_array_fill(&epochs, rows, COL_EPOCH);
        PQclear(rows);
        if (ids.n > 0)
            settle(pg, &ids, &epochs);
        if (!o->lease)
            pg_run(pg, "commit");
        messages += ids.n;
    } while (ids.n > 0);
    PQfinish(pg);
    pg_array_free(&ids);
    pg_array_free(&epochs);
    return messages;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, drain);
}
