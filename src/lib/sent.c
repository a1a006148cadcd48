/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/sent.h"

#include "core/clock.h"

enum { BATCH = 500 };
/* What is kept is kept a tenth longer at most, but for this. */
#define EVERY_MIN_NS (SL_SEC)
#define EVERY_MAX_NS (60 * SL_SEC)

typedef struct purge {
    sl_db *db;
    int64_t age_us;
    int64_t from_us; /* all before that has gone */
    bool mine;       /* no other node is at it */
    int64_t rows;    /* of the last batch */
} purge;

static sl_rc read_bool(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = cols[0].i != 0;
    return SL_OK;
}

static sl_rc note_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    purge *p = ctx;
    if (cols[0].i > p->from_us)
        p->from_us = cols[0].i;
    return SL_OK;
}

/* The lock first, and then a statement that sees what its last holder has done. */
static sl_rc purge_batch(purge *p, int64_t take, sl_err *err)
{
    sl_val in[] = { sl_int(p->age_us), sl_int(p->from_us), sl_int(take) };
    sl_call begin[] = {
        { .stmt = sl_db_stmt(p->db, "tx/begin") },
        { .stmt = sl_db_stmt(p->db, "sent/turn"), .row = read_bool, .ctx = &p->mine },
    };
    sl_call end[] = {
        { .stmt = sl_db_stmt(p->db, "sent/purge"), .in = in, .row = note_row, .ctx = p },
        { .stmt = sl_db_stmt(p->db, "tx/commit") },
    };
    p->rows = 0;
    sl_rc rc = p->db->ops->run(p->db, begin, 2, err);
    if (rc != SL_OK)
        return rc;
    rc =
        p->mine ? p->db->ops->run(p->db, end, 2, err) : p->db->ops->run(p->db, &end[1], 1, err);
    p->rows = p->mine ? end[0].affected : 0;
    return rc;
}

static sl_rc run(void *ctx, sl_db *db, const sl_settings *s, sl_stop *stop, int64_t *rows,
                 sl_err *err)
{
    (void)ctx;
    purge p = { .db = db, .age_us = s->retention_ns / 1000 };
    int64_t began_ns;
    sl_rc rc;
    do {
        began_ns = sl_now_ns();
        rc = purge_batch(&p, BATCH, err);
        *rows += p.rows;
    } while (rc == SL_OK && p.rows == BATCH && !sl_janitor_yield(stop, began_ns));
    return rc;
}

sl_chore sl_sent_chore(const sl_settings *s)
{
    int64_t every_ns = s->retention_ns / 10;
    every_ns = every_ns > EVERY_MAX_NS || every_ns == 0 ? EVERY_MAX_NS
               : every_ns < EVERY_MIN_NS                ? EVERY_MIN_NS
                                                        : every_ns;
    return (
        sl_chore){ .name = "purge of delivered messages", .every_ns = every_ns, .run = run };
}

sl_rc sl_sent_any(sl_db *db, bool *any, sl_err *err)
{
    *any = false;
    sl_rc rc = sl_db_run1(db, "sent/any", NULL, read_bool, any, NULL, err);
    return rc == SL_OPERATOR ? SL_OK : rc;
}

sl_rc sl_sent_purge_some(sl_db *db, const sl_settings *s, sl_err *err)
{
    purge p = { .db = db, .age_us = s->retention_ns / 1000 };
    return purge_batch(&p, BATCH, err);
}

sl_rc sl_sent_rehearse(sl_db *db, sl_err *err)
{
    purge p = { .db = db };
    return purge_batch(&p, 0, err);
}
