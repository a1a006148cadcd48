/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/below.h"

#include "core/clock.h"
#include "lib/rotate.h"

#define EVERY_NS (SL_SEC)
/* So much longer than the next look should take to come, the workers rely on it. */
#define TRUST_NS (5 * SL_SEC)
/* A tenth of the time at most. */
enum { COST = 10 };
/* With fewer since the last look, a worker passes them by in a millisecond. */
enum { MANY = 2000 };
enum { IS_NOT = -1 }; /* instead of a number of lanes: no look is of use here */

static sl_rc read_lane(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_lane_floors *f = ctx;
    f->found[f->founds++] = cols[0].i;
    return SL_OK;
}

/* *rows: in so many lanes something was found. */
static sl_rc run(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                 sl_err *err)
{
    (void)s;
    (void)stop;
    sl_below *b = ctx;
    bool stays = false; /* what was delivered: then floors are never forgotten */
    sl_rc rc = sl_rotate_is(db, &stays, err);
    if (rc != SL_OK) /* nobody knows: it is asked again */
        return rc;
    if (stays || !sl_db_has(db, "lanes/below")) {
        *rows = IS_NOT;
        return SL_OK;
    }
    int64_t began_ns = sl_now_ns();
    sl_lanes_floors(b->lanes, &b->floors);
    sl_val in[] = { sl_ints(b->floors.lanes, b->floors.count),
                    sl_ints(b->floors.floors, b->floors.count) };
    rc = sl_db_run1(db, "lanes/below", in, read_lane, &b->floors, NULL, err);
    if (rc != SL_OK)
        return rc;
    int64_t now_ns = sl_now_ns();
    b->next_ns = now_ns + (now_ns - began_ns) * COST;
    sl_lanes_looked(b->lanes, &b->floors, b->next_ns + TRUST_NS);
    *rows = (int64_t)b->floors.founds;
    return SL_OK;
}

static bool due(void *ctx, int64_t rows)
{
    sl_below *b = ctx;
    int64_t now = b->written(b->ctx);
    if (rows == IS_NOT || now - b->base < MANY || sl_now_ns() < b->next_ns)
        return false;
    b->base = now;
    return true;
}

sl_chore sl_below_chore(sl_below *b)
{
    return (
        sl_chore){ .name = "below", .every_ns = EVERY_NS, .run = run, .due = due, .ctx = b };
}

void sl_below_fini(sl_below *b)
{
    sl_lane_floors_fini(&b->floors);
}
