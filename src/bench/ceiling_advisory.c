/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PostgreSQL alone allows a worker that locks keys: a loop of plain libpq calls, with the
 * statements in sql/postgres/bench/advisory_*.
 *
 *   BEGIN
 *   lock     the keys of the next batch of messages, sl_bare_try_advisory_xact_lock on each
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
#include "bench/bare_pg.h"

enum { KEY_TEXT, KEY_UPTO, KEY_LOCKED };
enum { COL_ID };

typedef struct loop {
    const sl_ceiling *o;
    PGconn *pg;
    int64_t floor; /* the highest id that went */
    sl_bare_array keys, ids;
} loop;

static void loop_open(loop *l, const sl_ceiling *o)
{
    *l = (loop){ .o = o, .pg = sl_bare_open(o) };
    sl_bare_prepare(l->pg, o, "begin", "tx/begin", 0, NULL);
    sl_bare_prepare(l->pg, o, "commit", "tx/commit", 0, NULL);
    sl_bare_prepare(l->pg, o, "lock", "bench/advisory_lock", 2, (Oid[]){ OID_INT8, OID_INT8 });
    sl_bare_prepare(l->pg, o, "pick", "bench/advisory_pick", 4,
                    (Oid[]){ OID_TEXT_ARRAY, OID_INT8, OID_INT8, OID_INT8 });
    sl_bare_prepare(l->pg, o, "delete", "bench/advisory_delete", 1, (Oid[]){ OID_INT8_ARRAY });
    sl_bare_array_init(&l->keys, OID_TEXT);
    sl_bare_array_init(&l->ids, OID_INT8);
}

static void loop_close(loop *l)
{
    PQfinish(l->pg);
    sl_bare_array_free(&l->keys);
    sl_bare_array_free(&l->ids);
}

/* Locks the keys of a batch; returns the last id of it. */
static int64_t lock(loop *l)
{
    int64_t upto = 0;
    PGresult *rows =
        sl_bare_call(l->pg, "lock", 2,
                     (sl_bare_param[]){ { .number = l->floor }, { .number = l->o->batch } });
    for (int i = 0; i < PQntuples(rows); i++) {
        int64_t id = sl_bare_int8(rows, i, KEY_UPTO);
        if (!*PQgetvalue(rows, i, KEY_LOCKED))
            sl_bare_die("somebody else has locked a key");
        upto = id > upto ? id : upto;
    }
    sl_bare_array_fill(&l->keys, rows, KEY_TEXT);
    PQclear(rows);
    return upto;
}

static void pick(loop *l, int64_t upto)
{
    PGresult *rows = sl_bare_call(l->pg, "pick", 4,
                                  (sl_bare_param[]){ { .array = &l->keys },
                                                     { .number = l->floor },
                                                     { .number = upto },
                                                     { .number = l->o->batch } });
    int n = PQntuples(rows);
    sl_bare_read(rows);
    sl_bare_array_fill(&l->ids, rows, COL_ID);
    if (n > 0)
        l->floor = sl_bare_int8(rows, n - 1, COL_ID);
    PQclear(rows);
}

/* One batch; returns how many messages it had. */
static int64_t turn(loop *l)
{
    sl_bare_run(l->pg, "begin");
    pick(l, lock(l));
    if (l->ids.n > 0)
        sl_bare_delete(l->pg, "delete", 1, &(sl_bare_param){ .array = &l->ids }, l->ids.n);
    sl_bare_run(l->pg, "commit");
    return l->ids.n;
}

int64_t sl_ceiling_advisory(const sl_ceiling *o, int connection)
{
    loop l;
    int64_t messages = 0;
    if (connection > 0)
        sl_bare_die("this ceiling has one connection");
    loop_open(&l, o);
    sl_ceiling_ready(o);
    for (int64_t n; (n = turn(&l)) > 0;)
        messages += n;
    loop_close(&l);
    return messages;
}
