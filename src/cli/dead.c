/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dead.h"

enum { PAGE = 10000 }; /* a question is answered with so many */

/* ---- Filters ---- */

void sl_dead_filter_topic(sl_dead_filter *f, const char *topic)
{
    sl_str all = sl_str_of(topic);
    bool prefix = all.n && all.p[all.n - 1] == '*';
    f->topic = prefix ? SL_NONE : all;
    f->prefix = prefix ? (sl_str){ all.p, all.n - 1 } : SL_NONE;
}

bool sl_dead_filter_is_empty(const sl_dead_filter *f)
{
    return !f->topic.p && !f->prefix.p && !f->key.p && !f->error.p && !f->older_us &&
           !f->newer_us && !f->unknown;
}

static sl_val age(int64_t us)
{
    sl_val v = sl_int(us);
    v.null = us == 0;
    return v;
}

enum { FILTERS = 7 };

/* The first parameters of every statement that has filters. */
static void put_filters(sl_val in[FILTERS], const sl_dead_filter *f)
{
    in[0] = sl_text(f->topic);
    in[1] = sl_text(f->prefix);
    in[2] = sl_text(f->key);
    in[3] = age(f->older_us);
    in[4] = age(f->newer_us);
    in[5] = sl_text(f->error);
    in[6] = (sl_val){ .type = SL_T_BOOL, .null = !f->unknown, .i = 1 };
}

/* ---- Reading ---- */

static sl_rc read_counts(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(sl_dead_counts *)ctx = (sl_dead_counts){ cols[0].i, cols[1].i };
    return SL_OK;
}

sl_rc sl_dead_count(sl_dead_counts *out, sl_db *db, const sl_dead_filter *f, sl_err *err)
{
    sl_val in[FILTERS];
    put_filters(in, f);
    return sl_db_run1(db, "dead/count", in, read_counts, out, NULL, err);
}

sl_rc sl_dead_list(sl_db *db, const sl_dead_filter *f, int64_t limit, sl_row_fn row, void *ctx,
                   sl_err *err)
{
    sl_val in[FILTERS + 1];
    put_filters(in, f);
    in[FILTERS] = sl_int(limit);
    return sl_db_run1(db, "dead/list", in, row, ctx, NULL, err);
}

static sl_rc add_ref(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_dead_refs *r = ctx;
    sl_rc rc = sl_refs_row(r, cols, err);
    if (rc == SL_OK)
        r->v[r->count - 1].unknown = cols[3].i != 0;
    return rc;
}

sl_rc sl_dead_find(sl_dead_refs *out, sl_db *db, const sl_dead_filter *f, sl_err *err)
{
    sl_val in[FILTERS + 2];
    int64_t above = INT64_MIN;
    int64_t got = PAGE;
    put_filters(in, f);
    while (got == PAGE) {
        in[FILTERS] = sl_int(above);
        in[FILTERS + 1] = sl_int(PAGE);
        sl_rc rc = sl_db_run1(db, "dead/find", in, add_ref, out, &got, err);
        if (rc != SL_OK)
            return rc;
        above = out->count ? out->v[out->count - 1].row_id : above;
    }
    sl_refs_sort(out);
    return SL_OK;
}

sl_rc sl_dead_pick(sl_dead_refs *out, sl_db *db, const int64_t *dead_ids, size_t n, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (size_t i = 0; rc == SL_OK && i < n; i += PAGE) {
        size_t some = n - i < PAGE ? n - i : PAGE;
        rc = sl_db_run1(db, "dead/pick", (sl_val[]){ sl_ints(dead_ids + i, some) }, add_ref,
                        out, NULL, err);
    }
    sl_refs_sort(out);
    return rc;
}

/* ---- Leaving ---- */

static void tell_stay(void *ctx, const sl_ref *ref, const char *why)
{
    const sl_dead_job *job = ctx;
    job->stays(job->ctx, ref->row_id, why);
}

static void tell_step(void *ctx, size_t seen)
{
    const sl_dead_job *job = ctx;
    job->step(job->ctx, seen);
}

sl_rc sl_dead_move(sl_dead_job *job, sl_dead_refs *refs, sl_err *err)
{
    sl_requeue q = { .db = job->db,
                     .how = { .lock = "dead/lock",
                              .drop = "dead/drop",
                              .noun = "dead letter",
                              .by_row = true },
                     .stays = tell_stay,
                     .step = tell_step,
                     .ctx = job };
    if (job->resend) {
        q.how.taken = "dead/taken";
        q.how.unregister = "dead/unregister";
        q.how.insert = "dead/resend";
    }
    sl_rc rc = sl_requeue_run(&q, refs, err);
    job->done = q.done;
    job->gone = q.gone;
    job->stayed = q.stayed;
    return rc;
}
