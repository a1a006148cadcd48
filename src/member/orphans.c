/* SPDX-License-Identifier: Apache-2.0 */
#include "member/orphans.h"

sl_rc sl_orphans_list(sl_db *db, const char *worker, int64_t *listed, sl_err *err)
{
    sl_val in = sl_text(sl_str_of(worker));
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "consumed/orphans"), .in = &in },
        { .stmt = sl_db_stmt(db, "consumed/listed") },
        { .stmt = sl_db_stmt(db, "tx/commit") },
    };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    *listed = rc == SL_OK ? calls[1].affected : 0;
    return rc;
}

static sl_rc read_count(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(int64_t *)ctx = cols[0].i;
    return SL_OK;
}

sl_rc sl_orphans_count(sl_db *db, int64_t *count, sl_err *err)
{
    *count = 0;
    return sl_db_run1(db, "consumed/waiting", NULL, read_count, count, NULL, err);
}

static sl_rc read_may(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    bool *may = ctx;
    may[0] = cols[0].i != 0;
    may[1] = cols[1].i != 0;
    return SL_OK;
}

sl_rc sl_orphans_may(sl_db *db, bool *count, bool *list, sl_err *err)
{
    bool may[2] = { false, false };
    sl_rc rc = sl_db_run1(db, "consumed/may", NULL, read_may, may, NULL, err);
    *count = may[0];
    *list = may[0] && may[1];
    return rc;
}
