/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PostgreSQL alone allows the owner of all lanes: a loop of two plain libpq calls, with the
 * statements in sql/postgres/bench/lanes_*.
 *
 *   read     all lanes in one statement, each from its own floor on, the batch divided evenly
 *            among them; no row locks
 *   delete   by id, checking the epoch of every lane in the same statement; commits by itself
 *
 * Two round trips and one commit for a batch, and every value of every row is looked at. With
 * several connections the lanes are divided among them.
 *
 * It does less than a relay that keeps a promise: it acquires no lane and renews no lease, does
 * not look at available_at or at keys that wait, and knows nothing of messages that commit
 * late: its floors only rise, and a lane that gives less than it was asked for is done with.
 * What `sluice run --strategy lanes` does beyond that is what the ratio shows.
 */
#include "bench/bare_pg.h"

#include <stdlib.h>

enum { COL_ID, COL_LANE };

typedef struct lane {
    int64_t number;
    int64_t epoch;
    int64_t floor; /* the highest id that came */
    int64_t most;  /* asked for */
    int64_t came;
} lane;

typedef struct loop {
    const sl_ceiling *o;
    PGconn *pg;
    lane *lanes; /* those which may still have messages, by number */
    int count;
    sl_bare_array numbers, floors, mosts, epochs, ids;
} loop;

static void load_lanes(loop *l, int connection)
{
    PGresult *rows = sl_bare_call(
        l->pg, "epochs", 2,
        (sl_bare_param[]){ { .number = l->o->connections }, { .number = connection } });
    l->count = PQntuples(rows);
    l->lanes = calloc((size_t)l->count + 1, sizeof *l->lanes);
    if (!l->lanes)
        sl_bare_die("out of memory");
    for (int i = 0; i < l->count; i++)
        l->lanes[i] =
            (lane){ .number = sl_bare_int8(rows, i, 0), .epoch = sl_bare_int8(rows, i, 1) };
    PQclear(rows);
}

static void loop_open(loop *l, const sl_ceiling *o, int connection)
{
    *l = (loop){ .o = o, .pg = sl_bare_open(o) };
    sl_bare_prepare(l->pg, o, "epochs", "bench/lanes_epochs", 2, (Oid[]){ OID_INT8, OID_INT8 });
    sl_bare_prepare(l->pg, o, "read", "bench/lanes_read", 3,
                    (Oid[]){ OID_INT8_ARRAY, OID_INT8_ARRAY, OID_INT8_ARRAY });
    sl_bare_prepare(l->pg, o, "delete", "bench/lanes_delete", 3,
                    (Oid[]){ OID_INT8_ARRAY, OID_INT8_ARRAY, OID_INT8_ARRAY });
    sl_bare_array_init(&l->numbers, OID_INT8);
    sl_bare_array_init(&l->floors, OID_INT8);
    sl_bare_array_init(&l->mosts, OID_INT8);
    sl_bare_array_init(&l->epochs, OID_INT8);
    sl_bare_array_init(&l->ids, OID_INT8);
    load_lanes(l, connection);
}

static void loop_close(loop *l)
{
    PQfinish(l->pg);
    free(l->lanes);
    sl_bare_array_free(&l->numbers);
    sl_bare_array_free(&l->floors);
    sl_bare_array_free(&l->mosts);
    sl_bare_array_free(&l->epochs);
    sl_bare_array_free(&l->ids);
}

/* Divides the batch among the lanes; the first ones get what is left over. */
static void divide(loop *l)
{
    int64_t each = l->o->batch / l->count;
    int64_t over = l->o->batch % l->count;
    sl_bare_array_clear(&l->numbers);
    sl_bare_array_clear(&l->floors);
    sl_bare_array_clear(&l->mosts);
    sl_bare_array_clear(&l->epochs);
    for (int i = 0; i < l->count; i++) {
        lane *la = &l->lanes[i];
        la->most = each + (i < over);
        la->came = 0;
        sl_bare_array_add64(&l->numbers, la->number);
        sl_bare_array_add64(&l->floors, la->floor);
        sl_bare_array_add64(&l->mosts, la->most);
        sl_bare_array_add64(&l->epochs, la->epoch);
    }
}

/* Messages come lane by lane, in the order in which the lanes were asked for. */
static void raise_floors(loop *l, const PGresult *rows)
{
    int at = 0;
    for (int i = 0; i < PQntuples(rows); i++) {
        while (at < l->count && l->lanes[at].number != sl_bare_int8(rows, i, COL_LANE))
            at++;
        if (at == l->count)
            sl_bare_die("the lanes came in another order");
        l->lanes[at].floor = sl_bare_int8(rows, i, COL_ID);
        l->lanes[at].came++;
    }
}

static void drop_empty(loop *l)
{
    int kept = 0;
    for (int i = 0; i < l->count; i++)
        if (l->lanes[i].came == l->lanes[i].most)
            l->lanes[kept++] = l->lanes[i];
    l->count = kept;
}

/* One batch; returns how many messages it had. */
static int64_t turn(loop *l)
{
    divide(l);
    PGresult *rows = sl_bare_call(l->pg, "read", 3,
                                  (sl_bare_param[]){ { .array = &l->numbers },
                                                     { .array = &l->floors },
                                                     { .array = &l->mosts } });
    sl_bare_read(rows);
    sl_bare_array_fill(&l->ids, rows, COL_ID);
    raise_floors(l, rows);
    PQclear(rows);
    if (l->ids.n > 0)
        sl_bare_delete(l->pg, "delete", 3,
                       (sl_bare_param[]){ { .array = &l->ids },
                                          { .array = &l->numbers },
                                          { .array = &l->epochs } },
                       l->ids.n);
    drop_empty(l);
    return l->ids.n;
}

int64_t sl_ceiling_lanes(const sl_ceiling *o, int connection)
{
    loop l;
    int64_t messages = 0;
    loop_open(&l, o, connection);
    sl_ceiling_ready(o);
    while (l.count > 0)
        messages += turn(&l);
    loop_close(&l);
    return messages;
}
