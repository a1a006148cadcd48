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
#include "ceiling_common.h"

#include <endian.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

/* From PostgreSQL's pg_type: these never change. */
enum { OID_INT8 = 20, OID_TEXT = 25, OID_INT8_ARRAY = 1016 };
enum { COL_ID, COL_EPOCH };

/* A bigint[] as it goes over the wire, with a head of five words and a length before each
 * value. */
typedef struct array {
    char *bytes;
    int n;
} array;

enum { ARRAY_HEAD = 20, ARRAY_STEP = 12 };

static PGresult *check(PGconn *pg, PGresult *res)
{
    ExecStatusType s = PQresultStatus(res);
    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK)
        bench_die("%s", PQerrorMessage(pg));
    return res;
}

static void prepare(PGconn *pg, const bench_options *o, const char *as, const char *name,
                    int nparams, const Oid *types)
{
    char *sql = bench_sql(o, "postgres", name);
    PQclear(check(pg, PQprepare(pg, as, sql, nparams, types)));
    free(sql);
}

/* The program's settings for a session, since plans depend on them. */
static void open_session(PGconn *pg, const bench_options *o)
{
    char *sql = bench_sql(o, "postgres", "session/open");
    PQclear(check(pg, PQexecParams(pg, sql, 1, NULL, (const char *[]){ "0" }, NULL, NULL, 1)));
    free(sql);
}

static PGconn *open_prepared(const bench_options *o)
{
    PGconn *pg = PQconnectdb(o->db);
    if (PQstatus(pg) != CONNECTION_OK)
        bench_die("%s", PQerrorMessage(pg));
    open_session(pg, o);
    prepare(pg, o, "begin", "tx/begin", 0, NULL);
    prepare(pg, o, "commit", "tx/commit", 0, NULL);
    if (o->lease)
        prepare(pg, o, "take", "skip_locked/lease", 4,
                (Oid[]){ OID_INT8, OID_INT8, OID_INT8, OID_TEXT });
    else
        prepare(pg, o, "take", "skip_locked/take", 2, (Oid[]){ OID_INT8, OID_INT8 });
    prepare(pg, o, "sent", "settle/sent", 2, (Oid[]){ OID_INT8_ARRAY, OID_INT8_ARRAY });
    return pg;
}

static void run(PGconn *pg, const char *statement)
{
    PQclear(check(pg, PQexecPrepared(pg, statement, 0, NULL, NULL, NULL, 1)));
}

static PGresult *take(PGconn *pg, const bench_options *o)
{
    uint64_t batch = htobe64((uint64_t)o->batch);
    uint64_t bytes = htobe64((uint64_t)BENCH_BATCH_BYTES);
    uint64_t lease_us = htobe64((uint64_t)BENCH_LEASE_US);
    const char *values[] = { (char *)&batch, (char *)&bytes, (char *)&lease_us, "ceiling/1" };
    const int lengths[] = { 8, 8, 8, 9 };
    const int formats[] = { 1, 1, 1, 1 };
    return check(pg, PQexecPrepared(pg, "take", o->lease ? 4 : 2, values, lengths, formats, 1));
}

static void put32(char *at, uint32_t v)
{
    memcpy(at, &(uint32_t){ htobe32(v) }, 4);
}

static void array_init(array *a, int64_t room)
{
    a->bytes = malloc(ARRAY_HEAD + (size_t)room * ARRAY_STEP);
    if (!a->bytes)
        bench_die("out of memory");
    put32(a->bytes, 1); /* dimensions */
    put32(a->bytes + 4, 0);
    put32(a->bytes + 8, OID_INT8);
    put32(a->bytes + 16, 1); /* lower bound */
}

/* The values of one column, in the byte order in which they came. */
static void array_fill(array *a, const PGresult *rows, int column)
{
    a->n = PQntuples(rows);
    put32(a->bytes + 12, (uint32_t)a->n);
    for (int i = 0; i < a->n; i++) {
        char *at = a->bytes + ARRAY_HEAD + i * ARRAY_STEP;
        put32(at, 8);
        memcpy(at + 4, PQgetvalue(rows, i, column), 8);
    }
}

static void settle(PGconn *pg, const array *ids, const array *epochs)
{
    const char *values[] = { ids->bytes, epochs->bytes };
    const int lengths[] = { ARRAY_HEAD + ids->n * ARRAY_STEP,
                            ARRAY_HEAD + epochs->n * ARRAY_STEP };
    const int formats[] = { 1, 1 };
    PGresult *res = check(pg, PQexecPrepared(pg, "sent", 2, values, lengths, formats, 1));
    if (atoi(PQcmdTuples(res)) != ids->n)
        bench_die("%s of %d messages deleted", PQcmdTuples(res), ids->n);
    PQclear(res);
}

static int64_t drain(const bench_options *o)
{
    array ids, epochs;
    int64_t messages = 0;
    PGconn *pg = open_prepared(o);
    array_init(&ids, o->batch);
    array_init(&epochs, o->batch);
    bench_ready();
    do {
        if (!o->lease)
            run(pg, "begin");
        PGresult *rows = take(pg, o);
        array_fill(&ids, rows, COL_ID);
        array_fill(&epochs, rows, COL_EPOCH);
        PQclear(rows);
        if (ids.n > 0)
            settle(pg, &ids, &epochs);
        if (!o->lease)
            run(pg, "commit");
        messages += ids.n;
    } while (ids.n > 0);
    PQfinish(pg);
    free(ids.bytes);
    free(epochs.bytes);
    return messages;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, drain);
}
