/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PostgreSQL alone allows a worker that locks keys: a loop of plain libpq calls, with the
 * statements in bench/sql/postgres/advisory/.
 *
 *   BEGIN
 *   lock     the keys of the next batch of messages, pg_try_advisory_xact_lock on each
 *   pick     the messages of those keys, on a snapshot that is younger than the locks
 *   delete   by id
 *   COMMIT   which lets go of the keys
 *
 * Five round trips and one commit for a batch, and every value of every row is looked at.
 *
 * It does less than a relay that keeps a promise: it does not look at available_at or at keys
 * that wait, and its floor on id only rises, past messages that commit late. It is for one
 * connection: with rivals a floor would have to stay below the keys that they hold.
 */
#include "ceiling_pg.h"

enum { KEY_TEXT, KEY_UPTO, KEY_LOCKED };
enum { COL_ID };

typedef struct loop {
    const bench_options *o;
    PGconn *pg;
    int64_t floor; /* the highest id that went */
    pg_array keys, ids;
} loop;

static void loop_open(loop *l, const bench_options *o)
{
    *l = (loop){ .o = o, .pg = pg_open(o) };
    pg_prepare(l->pg, o, "begin", "tx/begin", 0, NULL);
    pg_prepare(l->pg, o, "commit", "tx/commit", 0, NULL);
    pg_prepare(l->pg, o, "lock", "advisory/lock", 2, (Oid[]){ OID_INT8, OID_INT8 });
    pg_prepare(l->pg, o, "pick", "advisory/pick", 4,
               (Oid[]){ OID_TEXT_ARRAY, OID_INT8, OID_INT8, OID_INT8 });
    pg_prepare(l->pg, o, "delete", "advisory/delete", 1, (Oid[]){ OID_INT8_ARRAY });
    pg_array_init(&l->keys, OID_TEXT);
    pg_array_init(&l->ids, OID_INT8);
}

static void loop_close(loop *l)
{
    PQfinish(l->pg);
    pg_array_free(&l->keys);
    pg_array_free(&l->ids);
}

/* Locks the keys of a batch; returns the last id of it. */
static int64_t lock(loop *l)
{
    int64_t upto = 0;
    PGresult *rows = pg_call(l->pg, "lock", 2,
                             (pg_param[]){ { .number = l->floor }, { .number = l->o->batch } });
    for (int i = 0; i < PQntuples(rows); i++) {
        int64_t id = pg_int8(rows, i, KEY_UPTO);
        if (!*PQgetvalue(rows, i, KEY_LOCKED))
            bench_die("somebody else has locked a key");
        upto = id > upto ? id : upto;
    }
    pg_array_fill(&l->keys, rows, KEY_TEXT);
    PQclear(rows);
    return upto;
}

static void pick(loop *l, int64_t upto)
{
    PGresult *rows = pg_call(l->pg, "pick", 4,
                             (pg_param[]){ { .array = &l->keys },
                                           { .number = l->floor },
                                           { .number = upto },
                                           { .number = l->o->batch } });
    int n = PQntuples(rows);
    pg_read(rows);
    pg_array_fill(&l->ids, rows, COL_ID);
    if (n > 0)
        l->floor = pg_int8(rows, n - 1, COL_ID);
    PQclear(rows);
}

/* One batch; returns how many messages it had. */
static int64_t turn(loop *l)
{
    pg_run(l->pg, "begin");
    pick(l, lock(l));
    if (l->ids.n > 0)
        pg_delete(l->pg, "delete", 1, &(pg_param){ .array = &l->ids }, l->ids.n);
    pg_run(l->pg, "commit");
    return l->ids.n;
}

static int64_t drain(const bench_options *o, int connection)
{
    loop l;
    int64_t messages = 0;
    if (connection > 0)
        bench_die("this ceiling has one connection");
    loop_open(&l, o);
    bench_ready();
    for (int64_t n; (n = turn(&l)) > 0;)
        messages += n;
    loop_close(&l);
    return messages;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, drain);
}
