/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wake.h"

#include "core/clock.h"

/* While a producer is at work that would not notify. */
#define UNARMED_BASE_NS (SL_MS)
#define UNARMED_MAX_NS (50 * SL_MS)

static sl_rc arm_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_wake *w = ctx;
    w->mine = cols[0].i;
    w->armed = cols[1].i;
    return SL_OK;
}

/* What came before is of no interest: the table is looked at after this. */
static sl_rc forget(sl_db *db, sl_err *err)
{
    bool woken;
    return db->ops->await(db, -1, 0, &woken, err);
}

sl_rc sl_wake_arm(sl_wake *w, sl_db *db, sl_err *err)
{
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "wake/arm"), .row = arm_row, .ctx = w },
        { .stmt = sl_db_stmt(db, "wake/listen") },
    };
    w->woken = false;
    if (w->mine)
        return SL_OK;
    sl_rc rc = forget(db, err);
    if (rc == SL_OK)
        rc = db->ops->run(db, calls, w->listening ? 1 : 2, err);
    w->listening |= rc == SL_OK;
    return rc;
}

sl_rc sl_wake_sleep(sl_wake *w, sl_db *db, int fd, int64_t ns, sl_err *err)
{
    return db->ops->await(db, fd, sl_now_ns() + ns, &w->woken, err);
}

sl_rc sl_wake_wait(sl_wake *w, sl_db *db, int fd, unsigned tries, int64_t ns, sl_err *err)
{
    int64_t pause_ns = sl_backoff_ns(tries, UNARMED_BASE_NS, UNARMED_MAX_NS);
    return sl_wake_sleep(w, db, fd, w->armed || ns < pause_ns ? ns : pause_ns, err);
}

sl_rc sl_wake_disarm(sl_wake *w, sl_db *db, sl_err *err)
{
    bool mine = w->mine;
    w->mine = w->armed = false;
    return mine ? sl_db_run1(db, "wake/disarm", NULL, NULL, NULL, NULL, err) : SL_OK;
}

sl_rc sl_wake_test(sl_db *sleeper, sl_db *caller, int64_t ns, bool *works, sl_err *err)
{
    sl_rc rc = forget(sleeper, err);
    if (rc == SL_OK)
        rc = sl_db_run1(sleeper, "wake/listen", NULL, NULL, NULL, NULL, err);
    if (rc == SL_OK)
        rc = sl_db_run1(caller, "wake/call", NULL, NULL, NULL, NULL, err);
    return rc == SL_OK ? sleeper->ops->await(sleeper, -1, sl_now_ns() + ns, works, err) : rc;
}
