/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/vacuum.h"

#include "core/clock.h"

enum { STEP = 5000, STEP_MAX = 1000000 };
#define EVERY_NS (100 * SL_MS)

enum { MAY_NOT = -1 }; /* instead of a number of rows */
/* Between two pauses, as the server counts: its own default while few rows are dead, and more the more there are. Else
 * there are more each time, since those who work are quicker than one that pauses. */
enum { POINTS = 200, POINTS_MAX = 10000, FEW = 10000 };

static sl_rc read_int(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].i;
    return SL_OK;
}

/* The first one asks, too: `sign` is -1 then. */
static sl_rc ask_next(sl_db *db, int64_t sign, int64_t *rows, sl_err *err)
{
    sl_val in = sl_int(sign);
    return sl_db_run1(db, "vacuum/next", &in, read_int, rows, NULL, err);
}

static int64_t points_for(int64_t dead)
{
    int64_t points = dead > FEW ? dead / FEW * POINTS : POINTS;
    return points < POINTS_MAX ? points : POINTS_MAX;
}

static sl_rc vacuum(const sl_vacuum *v, sl_db *db, sl_err *err)
{
    sl_val points = sl_int(points_for(v->dead));
    sl_rc rc = sl_db_run1(db, "vacuum/gently", &points, NULL, NULL, NULL, err);
    return rc == SL_OK ? sl_db_run1(db, "vacuum/run", NULL, NULL, NULL, NULL, err) : rc;
}

/* *rows: after so many more the next one is worth its while. Of a table that is full when the node starts, the first one,
 * too: it would go through all indexes for the few rows that have gone. */
static sl_rc run(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                 sl_err *err)
{
    sl_vacuum *v = ctx;
    (void)s;
    (void)stop;
    int64_t may = 0;
    sl_rc rc = sl_db_run1(db, "vacuum/may", NULL, read_int, &may, NULL, err);
    if (rc == SL_OK && !may)
        *rows = MAY_NOT;
    if (rc != SL_OK || !may)
        return rc;
    if (!v->asked) {
        int64_t first = 0;
        rc = ask_next(db, -1, &first, err);
        v->asked = rc == SL_OK;
        if (rc == SL_OK && first > STEP)
            *rows = first;
        if (rc != SL_OK || first > STEP)
            return rc;
    }
    rc = vacuum(v, db, err);
    return rc == SL_OK ? ask_next(db, 1, rows, err) : rc;
}

static void learn(sl_vacuum *v, int64_t next)
{
    v->ran = false;
    v->step = next < STEP ? STEP : next > STEP_MAX ? STEP_MAX : next;
}

static bool due(void *ctx, int64_t rows)
{
    sl_vacuum *v = ctx;
    int64_t now = v->written(v->ctx);
    if (v->ran)
        learn(v, rows);
    if (rows == MAY_NOT || now - v->base < v->step)
        return false;
    v->dead = now - v->base;
    v->base = now;
    v->ran = true;
    return true;
}

sl_chore sl_vacuum_chore(sl_vacuum *v)
{
    v->step = STEP;
    return (
        sl_chore){ .name = "vacuum", .every_ns = EVERY_NS, .run = run, .due = due, .ctx = v };
}
