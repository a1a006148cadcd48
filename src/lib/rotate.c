/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rotate.h"

#include "core/clock.h"

#define EVERY_NS (SL_SEC)
/* A position that was drawn before the last fold and committed after it is found then. */
#define FULL_EVERY_NS (60 * SL_SEC)
/* Who reads a segment that could go may do so for hours, and each try holds up all workers for a moment. */
#define BUSY_BASE_NS (2 * SL_SEC)
#define BUSY_MAX_NS (30 * SL_SEC)
enum { SWEEP = 5000 };
/* What done/clear says. */
enum { CLEARED = 1, HELD = 2, BUSY = 3 };
enum { IS_NOT = -1 }; /* instead of a number of segments */

typedef struct segments {
    size_t count;
    int64_t oids[SL_ROTATE_SEGMENTS];
    bool current[SL_ROTATE_SEGMENTS];
} segments;

static sl_rc read_int(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].i;
    return SL_OK;
}

static sl_rc read_segment(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    segments *s = ctx;
    if (s->count < SL_ROTATE_SEGMENTS) {
        s->oids[s->count] = cols[0].i;
        s->current[s->count++] = cols[1].i != 0;
    }
    return SL_OK;
}

static sl_rc fold(sl_db *db, sl_rotate *r, sl_err *err)
{
    int64_t now_ns = sl_now_ns();
    if (now_ns >= r->full_ns) {
        r->full_ns = now_ns + FULL_EVERY_NS;
        r->low = 0;
    }
    sl_val low = sl_int(r->low);
    return sl_db_run1(db, "done/fold", &low, read_int, &r->low, NULL, err);
}

static sl_rc sweep(sl_db *db, int64_t segment, sl_stop *stop, sl_err *err)
{
    sl_rc rc = SL_OK;
    int64_t began_ns;
    int64_t swept;
    sl_val in[] = { sl_int(segment), sl_int(SWEEP) };
    do {
        swept = 0;
        began_ns = sl_now_ns();
        rc = sl_db_run1(db, "done/sweep", in, read_int, &swept, NULL, err);
    } while (rc == SL_OK && swept == SWEEP && !sl_janitor_yield(stop, began_ns));
    return rc;
}

/* What is known of this segment; if nothing is, or of too many, the first that is free, or the last. */
static sl_rotate_busy *busy_of(sl_rotate *r, int64_t segment)
{
    sl_rotate_busy *b = r->busy;
    while (b < r->busy + SL_ROTATE_SEGMENTS - 1 && b->segment && b->segment != segment)
        b++;
    if (b->segment != segment)
        *b = (sl_rotate_busy){ .segment = segment };
    return b;
}

static sl_rc clear_one(sl_db *db, sl_rotate *r, int64_t segment, bool current, sl_stop *stop,
                       int64_t *cleared, sl_err *err)
{
    int64_t state = 0;
    sl_val in = sl_int(segment);
    sl_rotate_busy *b = busy_of(r, segment);
    if (sl_now_ns() < b->next_ns)
        return SL_OK;
    sl_rc rc = sl_db_run1(db, "done/clear", &in, read_int, &state, NULL, err);
    b->tries = state == BUSY ? b->tries + 1 : 0;
    b->next_ns =
        b->tries ? sl_now_ns() + sl_backoff_ns(b->tries, BUSY_BASE_NS, BUSY_MAX_NS) : 0;
    *cleared += state == CLEARED;
    return rc == SL_OK && state == HELD && !current ? sweep(db, segment, stop, err) : rc;
}

/* Producers write to the current one, and would have to wait a moment: only while nothing happens. */
static sl_rc clear(sl_db *db, sl_rotate *r, sl_stop *stop, int64_t *cleared, sl_err *err)
{
    segments s = { 0 };
    sl_rc rc = sl_db_run1(db, "done/segments", NULL, read_segment, &s, NULL, err);
    for (size_t i = 0; rc == SL_OK && i < s.count; i++)
        if (!s.current[i] || r->idle)
            rc = clear_one(db, r, s.oids[i], s.current[i], stop, cleared, err);
    return rc;
}

sl_rc sl_rotate_is(sl_db *db, bool *rotated, sl_err *err)
{
    int64_t is = 0;
    sl_rc rc = SL_OK;
    if (sl_db_has(db, "done/layout"))
        rc = sl_db_run1(db, "done/layout", NULL, read_int, &is, NULL, err);
    *rotated = is != 0;
    return rc;
}

static sl_rc run(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                 sl_err *err)
{
    (void)s;
    sl_rotate *r = ctx;
    bool rotated = false;
    sl_rc rc = sl_rotate_is(db, &rotated, err);
    if (rc == SL_OK && !rotated)
        *rows = IS_NOT;
    if (rc != SL_OK || !rotated)
        return rc;
    rc = fold(db, r, err);
    return rc == SL_OK ? clear(db, r, stop, rows, err) : rc;
}

/* Once more after the last message, since only then the current segment can go, and as long as segments do. */
static bool due(void *ctx, int64_t rows)
{
    sl_rotate *r = ctx;
    int64_t now = r->written(r->ctx);
    bool busy = now != r->base;
    if (rows == IS_NOT || (!busy && r->idle && rows == 0))
        return false;
    r->idle = !busy;
    r->base = now;
    return true;
}

sl_chore sl_rotate_chore(sl_rotate *r)
{
    return (
        sl_chore){ .name = "rotation", .every_ns = EVERY_NS, .run = run, .due = due, .ctx = r };
}
