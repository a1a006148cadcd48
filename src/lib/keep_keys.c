/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/keep_keys.h"

#include "core/clock.h"

enum { PAGE = 1000, IN_VAIN_MAX = 100000 };
/* A key is kept a tenth longer at most, but for this. */
#define EVERY_MIN_NS (SL_SEC)
#define EVERY_MAX_NS (60 * SL_SEC)

static sl_rc read_ints(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    int64_t *out = ctx;
    out[0] = cols[0].i;
    out[1] = cols[1].i;
    return SL_OK;
}

static sl_rc read_span(void *ctx, const sl_val *cols, sl_err *err)
{
    ((int64_t *)ctx)[2] = cols[2].i;
    return read_ints(ctx, cols, err);
}

/* Marks from here to there, as long as *in_vain allows. */
static sl_rc mark(sl_db *db, int64_t first, int64_t last, int64_t *in_vain, sl_stop *stop,
                  sl_err *err)
{
    sl_rc rc = SL_OK;
    int64_t page[2] = { PAGE, first - 1 }; /* how many, and the last of them */
    while (rc == SL_OK && page[0] == PAGE && *in_vain < IN_VAIN_MAX &&
           sl_stop_level_of(stop) == SL_GO) {
        int64_t from = page[1] + 1, marked = 0, began_ns = sl_now_ns();
        rc = sl_db_run1(db, "idempotency/page",
                        (sl_val[]){ sl_int(from), sl_int(last), sl_int(PAGE) }, read_ints, page,
                        NULL, err);
        if (rc == SL_OK && page[0] > 0)
            rc = sl_db_run1(db, "idempotency/mark", (sl_val[]){ sl_int(from), sl_int(page[1]) },
                            NULL, NULL, &marked, err);
        *in_vain += page[0] - marked;
        if (rc == SL_OK && page[0] == PAGE && sl_janitor_yield(stop, began_ns))
            break;
    }
    return rc;
}

/* Once round, from a place that is another each time. */
static sl_rc mark_gone(sl_db *db, sl_stop *stop, sl_err *err)
{
    int64_t in_vain = 0;
    int64_t span[3]; /* first, last, start */
    sl_rc rc = sl_db_run1(db, "idempotency/span", NULL, read_span, span, NULL, err);
    if (rc == SL_OK)
        rc = mark(db, span[2], span[1], &in_vain, stop, err);
    return rc == SL_OK ? mark(db, span[0], span[2] - 1, &in_vain, stop, err) : rc;
}

typedef struct expired {
    int64_t count, last_us;
} expired;

static sl_rc note_expired(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    expired *e = ctx;
    e->count++;
    if (cols[0].i > e->last_us)
        e->last_us = cols[0].i;
    return SL_OK;
}

static sl_rc expire(sl_db *db, int64_t keep_ns, sl_stop *stop, int64_t *rows, sl_err *err)
{
    sl_rc rc = SL_OK;
    expired e = { .count = PAGE };
    while (rc == SL_OK && e.count == PAGE && sl_stop_level_of(stop) == SL_GO) {
        int64_t began_ns = sl_now_ns();
        e.count = 0;
        rc = sl_db_run1(db, "idempotency/expire",
                        (sl_val[]){ sl_int(keep_ns / 1000), sl_int(e.last_us), sl_int(PAGE) },
                        note_expired, &e, NULL, err);
        *rows += e.count;
        if (rc == SL_OK && e.count == PAGE && sl_janitor_yield(stop, began_ns))
            break;
    }
    return rc;
}

sl_rc sl_keep_keys(sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows, sl_err *err)
{
    *rows = 0;
    sl_rc rc = mark_gone(db, stop, err);
    return rc == SL_OK ? expire(db, s->idempotency_keep_ns, stop, rows, err) : rc;
}

static sl_rc run(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                 sl_err *err)
{
    (void)ctx;
    return sl_keep_keys(db, s, stop, rows, err);
}

sl_chore sl_keep_keys_chore(const sl_settings *s)
{
    int64_t every_ns = s->idempotency_keep_ns / 10;
    every_ns = every_ns > EVERY_MAX_NS   ? EVERY_MAX_NS
               : every_ns < EVERY_MIN_NS ? EVERY_MIN_NS
                                         : every_ns;
    return (
        sl_chore){ .name = "clean-up of idempotency keys", .every_ns = every_ns, .run = run };
}
