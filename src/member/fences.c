/* SPDX-License-Identifier: Apache-2.0 */
#include "member/fences.h"

#include "core/mem.h"

void sl_fence_jobs_fini(sl_fence_jobs *j)
{
    for (size_t i = 0; i < j->count; i++) {
        free(j->v[i].node);
        free(j->v[i].place);
    }
    free(j->v);
    *j = (sl_fence_jobs){ 0 };
}

static sl_rc note_any(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = cols[0].i != 0;
    return SL_OK;
}

sl_rc sl_fences_any(sl_db *db, bool *any, sl_err *err)
{
    *any = false;
    return sl_db_run1(db, "fence/any", NULL, note_any, any, NULL, err);
}

static sl_rc add_job(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_fence_jobs *j = ctx;
    if (j->count == j->cap) {
        j->cap = j->cap ? 2 * j->cap : 4;
        j->v = sl_realloc(j->v, j->cap * sizeof *j->v);
    }
    j->v[j->count++] = (sl_fence_job){
        .session = cols[0].i,
        .way = cols[1].i,
        .node = sl_strndup(cols[2].s.p, cols[2].s.n),
        .workers = cols[3].i,
        .place = sl_strndup(cols[4].s.p, cols[4].s.n),
    };
    return SL_OK;
}

sl_rc sl_fences_take(sl_db *db, int64_t busy_ns, sl_fence_jobs *out, sl_err *err)
{
    sl_val in = sl_int(busy_ns / 1000);
    sl_fence_jobs_fini(out);
    return sl_db_run1(db, "fence/take", &in, add_job, out, NULL, err);
}

/* One at a time: whoever comes second finds nothing to do. */
sl_rc sl_fences_done(sl_db *db, const sl_fence_job *j, const int64_t *ids, size_t n, bool keep,
                     int64_t *gone, sl_err *err)
{
    sl_val in[] = { sl_int(j->session), sl_int(j->way) };
    sl_call lock[] = { { .stmt = sl_db_stmt(db, "tx/begin") },
                       { .stmt = sl_db_stmt(db, "fence/lock"), .in = in } };
    int64_t *zeros = sl_alloc((2 * n + 2) * sizeof *zeros);
    int64_t *ones = zeros + n + 1;
    for (size_t i = 0; i < n; i++)
        ones[i] = 1;
    sl_val kept[] = { sl_ints(ids, n), sl_ints(zeros, n), sl_ints(ones, n) };
    sl_call calls[4];
    size_t count = 0;
    if (n && keep)
        calls[count++] = (sl_call){ .stmt = sl_db_stmt(db, "ordered/keep"), .in = kept };
    size_t sent_at = count;
    if (n)
        calls[count++] = (sl_call){ .stmt = sl_db_stmt(db, "ordered/sent"), .in = kept };
    calls[count++] = (sl_call){ .stmt = sl_db_stmt(db, "fence/done"), .in = in };
    calls[count++] = (sl_call){ .stmt = sl_db_stmt(db, "tx/commit") };
    *gone = 0;
    sl_rc rc = db->ops->run(db, lock, 2, err);
    if (rc == SL_OK && lock[1].affected == 0)
        db->ops->rollback(db);
    else if (rc == SL_OK)
        rc = db->ops->run(db, calls, count, err);
    if (rc == SL_OK && lock[1].affected && n)
        *gone = calls[sent_at].affected;
    free(zeros);
    return rc;
}

sl_rc sl_fences_forget(sl_db *db, int64_t session, sl_err *err)
{
    sl_val in = sl_int(session);
    return sl_db_run1(db, "fence/forget", &in, NULL, NULL, NULL, err);
}

sl_rc sl_fences_lives(sl_db *db, int64_t session, bool *lives, sl_err *err)
{
    sl_val in = sl_int(session);
    *lives = false;
    return sl_db_run1(db, "nodes/lives", &in, note_any, lives, NULL, err);
}

sl_rc sl_fences_rehearse(sl_db *db, sl_err *err)
{
    int64_t none;
    int64_t gone;
    bool any;
    sl_fence_job nobody = { .session = 0 };
    sl_val in[] = { sl_int(0), sl_text(SL_STR("")), sl_int(0), sl_ints(&none, 0),
                    sl_texts(NULL, 0) };
    sl_rc rc = sl_db_run1(db, "fence/register", in, NULL, NULL, NULL, err);
    if (rc == SL_OK)
        rc = sl_fences_any(db, &any, err);
    if (rc == SL_OK)
        rc = sl_fences_done(db, &nobody, NULL, 0, false, &gone, err);
    if (rc == SL_OK)
        rc = sl_db_run1(db, "fence/done", (sl_val[]){ sl_int(0), sl_int(0) }, NULL, NULL, NULL,
                        err);
    return rc;
}
