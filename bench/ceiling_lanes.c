/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PostgreSQL alone allows the owner of all lanes: a loop of two plain libpq calls, with the
 * statements in bench/sql/postgres/lanes/.
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
#include "ceiling_pg.h"

#include <stdlib.h>

enum { COL_ID, COL_LANE };

typedef struct lane {
    int32_t number;
    int64_t epoch;
    int64_t floor; /* the highest id that came */
    int64_t most;  /* asked for */
    int64_t came;
} lane;

typedef struct loop {
    const bench_options *o;
    PGconn *pg;
    lane *lanes; /* those which may still have messages, by number */
    int count;
    pg_array numbers, floors, mosts, epochs, ids;
} loop;

static void load_lanes(loop *l, int connection)
{
    PGresult *rows =
        pg_call(l->pg, "epochs", 2,
                (pg_param[]){ { .number = l->o->connections }, { .number = connection } });
    l->count = PQntuples(rows);
    l->lanes = calloc((size_t)l->count + 1, sizeof *l->lanes);
    if (!l->lanes)
        bench_die("out of memory");
    for (int i = 0; i < l->count; i++)
        l->lanes[i] = (lane){ .number = pg_int4(rows, i, 0), .epoch = pg_int8(rows, i, 1) };
    PQclear(rows);
}

static void loop_open(loop *l, const bench_options *o, int connection)
{
    *l = (loop){ .o = o, .pg = pg_open(o) };
    pg_prepare(l->pg, o, "epochs", "lanes/epochs", 2, (Oid[]){ OID_INT8, OID_INT8 });
    pg_prepare(l->pg, o, "read", "lanes/read", 3,
               (Oid[]){ OID_INT4_ARRAY, OID_INT8_ARRAY, OID_INT8_ARRAY });
    pg_prepare(l->pg, o, "delete", "lanes/delete", 3,
               (Oid[]){ OID_INT8_ARRAY, OID_INT4_ARRAY, OID_INT8_ARRAY });
    pg_array_init(&l->numbers, OID_INT4);
    pg_array_init(&l->floors, OID_INT8);
    pg_array_init(&l->mosts, OID_INT8);
    pg_array_init(&l->epochs, OID_INT8);
    pg_array_init(&l->ids, OID_INT8);
    load_lanes(l, connection);
}

static void loop_close(loop *l)
{
    PQfinish(l->pg);
    free(l->lanes);
    pg_array_free(&l->numbers);
    pg_array_free(&l->floors);
    pg_array_free(&l->mosts);
    pg_array_free(&l->epochs);
    pg_array_free(&l->ids);
}

/* Divides the batch among the lanes; the first ones get what is left over. */
static void divide(loop *l)
{
    int64_t each = l->o->batch / l->count;
    int64_t over = l->o->batch % l->count;
    pg_array_clear(&l->numbers);
    pg_array_clear(&l->floors);
    pg_array_clear(&l->mosts);
    pg_array_clear(&l->epochs);
    for (int i = 0; i < l->count; i++) {
        lane *la = &l->lanes[i];
        la->most = each + (i < over);
        la->came = 0;
        pg_array_add32(&l->numbers, la->number);
        pg_array_add64(&l->floors, la->floor);
        pg_array_add64(&l->mosts, la->most);
        pg_array_add64(&l->epochs, la->epoch);
    }
}

/* Messages come lane by lane, in the order in which the lanes were asked for. */
static void raise_floors(loop *l, const PGresult *rows)
{
    int at = 0;
    for (int i = 0; i < PQntuples(rows); i++) {
        while (at < l->count && l->lanes[at].number != pg_int4(rows, i, COL_LANE))
            at++;
        if (at == l->count)
            bench_die("the lanes came in another order");
        l->lanes[at].floor = pg_int8(rows, i, COL_ID);
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
    PGresult *rows = pg_call(l->pg, "read", 3,
                             (pg_param[]){ { .array = &l->numbers },
                                           { .array = &l->floors },
                                           { .array = &l->mosts } });
    pg_read(rows);
    pg_array_fill(&l->ids, rows, COL_ID);
    raise_floors(l, rows);
    PQclear(rows);
    if (l->ids.n > 0)
        pg_delete(l->pg, "delete", 3,
                  (pg_param[]){
                      { .array = &l->ids }, { .array = &l->numbers }, { .array = &l->epochs } },
                  l->ids.n);
    drop_empty(l);
    return l->ids.n;
}

static int64_t drain(const bench_options *o, int connection)
{
    loop l;
    int64_t messages = 0;
    loop_open(&l, o, connection);
    bench_ready();
    while (l.count > 0)
        messages += turn(&l);
    loop_close(&l);
    return messages;
}

int main(int argc, char **argv)
{
    return bench_main(argc, argv, drain);
}
