/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dead.h"

#include "core/buf.h"
#include "core/mem.h"

/* A transaction takes at most so much, but for one larger message; and a question is answered with so many. */
enum { CHUNK = 500, CHUNK_BYTES = 16 << 20, PAGE = 10000 };

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
    (void)err;
    sl_dead_refs *r = ctx;
    if (r->count == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->v = sl_realloc(r->v, r->cap * sizeof *r->v);
    }
    r->v[r->count++] = (sl_dead_ref){
        .dead_id = cols[0].i, .id = cols[1].i, .bytes = cols[2].i, .unknown = cols[3].i != 0
    };
    return SL_OK;
}

static int by_id(const void *a, const void *b)
{
    const sl_dead_ref *x = a;
    const sl_dead_ref *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->dead_id > y->dead_id) - (x->dead_id < y->dead_id);
}

/* One that was named twice stands beside itself. */
static void sort_refs(sl_dead_refs *r)
{
    size_t kept = 0;
    if (r->count)
        qsort(r->v, r->count, sizeof *r->v, by_id);
    for (size_t i = 0; i < r->count; i++)
        if (kept == 0 || r->v[kept - 1].dead_id != r->v[i].dead_id)
            r->v[kept++] = r->v[i];
    r->count = kept;
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
        above = out->count ? out->v[out->count - 1].dead_id : above;
    }
    sort_refs(out);
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
    sort_refs(out);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

size_t sl_dead_missing(const sl_dead_refs *refs, const int64_t *dead_ids, size_t n,
                       int64_t *missing)
{
    size_t found = 0;
    int64_t *have = sl_alloc((refs->count + 1) * sizeof *have);
    for (size_t i = 0; i < refs->count; i++)
        have[i] = refs->v[i].dead_id;
    qsort(have, refs->count, sizeof *have, by_number);
    for (size_t i = 0; i < n; i++)
        if (!bsearch(&dead_ids[i], have, refs->count, sizeof *have, by_number))
            missing[found++] = dead_ids[i];
    free(have);
    return found;
}

void sl_dead_refs_fini(sl_dead_refs *refs)
{
    free(refs->v);
    *refs = (sl_dead_refs){ 0 };
}

/* ---- Leaving ---- */

/* What one transaction takes. */
typedef struct chunk {
    sl_dead_ref *v;
    size_t n;
    size_t at; /* where the last answer was found: they come nearly in this order */
    size_t locked;
    int64_t dead_ids[CHUNK]; /* parameters: first of all, then of those that go */
    size_t going;
    sl_buf reasons[CHUNK]; /* by place; empty: none */
} chunk;

static size_t place_of(chunk *c, int64_t dead_id)
{
    for (size_t i = 0; i < c->n; i++, c->at = (c->at + 1) % c->n)
        if (c->v[c->at].dead_id == dead_id)
            return c->at;
    abort(); /* only what was asked for is answered */
}

static sl_rc note_locked(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    chunk *c = ctx;
    c->v[place_of(c, cols[0].i)].there = true;
    c->locked++;
    return SL_OK;
}

static sl_rc note_taken(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    chunk *c = ctx;
    size_t i = place_of(c, cols[0].i);
    if (!c->v[i].there)
        return SL_OK; /* it is gone, and the message is likely itself */
    c->v[i].there = false;
    sl_buf_reset(&c->reasons[i]);
    sl_buf_printf(&c->reasons[i], "message %lld has its idempotency key '%.*s'",
                  (long long)cols[1].i, (int)cols[2].s.n, cols[2].s.p);
    return SL_OK;
}

/* Opens the transaction, and says what is there. */
static sl_rc lock(const sl_dead_job *job, chunk *c, sl_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        c->v[i].there = false;
        c->dead_ids[i] = c->v[i].dead_id;
    }
    sl_val in[] = { sl_ints(c->dead_ids, c->n) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(job->db, "tx/begin") },
        { .stmt = sl_db_stmt(job->db, "dead/lock"), .in = in, .row = note_locked, .ctx = c },
        { .stmt = sl_db_stmt(job->db, "dead/taken"), .in = in, .row = note_taken, .ctx = c },
    };
    return job->db->ops->run(job->db, calls, job->resend ? 3 : 2, err);
}

/* The table may leave out what is inserted: ours does where an idempotency key is registered, and so may a trigger or a
 * rule of someone else. Then nothing is deleted, either. */
static sl_rc check_resent(sl_dead_job *job, const chunk *c, int64_t inserted, sl_err *err)
{
    job->left_out = job->resend && inserted != (int64_t)c->going;
    if (!job->left_out)
        return SL_OK;
    job->db->ops->rollback(job->db);
    return sl_fail(err, SL_REFUSED, "the table took %lld of %zu messages", (long long)inserted,
                   c->going);
}

static sl_rc move_locked(sl_dead_job *job, chunk *c, sl_err *err)
{
    c->going = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].there)
            c->dead_ids[c->going++] = c->v[i].dead_id;
    sl_val in[] = { sl_ints(c->dead_ids, c->going) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(job->db, "dead/unregister"), .in = in },
        { .stmt = sl_db_stmt(job->db, "dead/resend"), .in = in },
        { .stmt = sl_db_stmt(job->db, "dead/drop"), .in = in },
    };
    sl_call *first = job->resend ? calls : calls + 2;
    sl_rc rc = job->db->ops->run(job->db, first, job->resend ? 3 : 1, err);
    if (rc == SL_OK)
        rc = check_resent(job, c, calls[1].affected, err);
    return rc == SL_OK ? sl_db_run1(job->db, "tx/commit", NULL, NULL, NULL, NULL, err) : rc;
}

static void count(sl_dead_job *job, const chunk *c)
{
    job->done += c->going;
    job->gone += c->n - c->locked;
    job->stayed += c->locked - c->going;
    for (size_t i = 0; i < c->n; i++)
        if (c->reasons[i].n)
            job->stays(job->ctx, c->v[i].dead_id, sl_buf_text(&c->reasons[i]));
}

static sl_rc move_once(sl_dead_job *job, sl_dead_ref *v, size_t n, sl_err *err)
{
    chunk *c = sl_alloc(sizeof *c);
    c->v = v;
    c->n = n;
    job->left_out = false;
    sl_rc rc = lock(job, c, err);
    if (rc == SL_OK)
        rc = move_locked(job, c, err);
    if (rc == SL_OK)
        count(job, c);
    for (size_t i = 0; i < n; i++)
        sl_buf_fini(&c->reasons[i]);
    free(c);
    return rc;
}

/* One alone. If the table left it out: had a message with its idempotency key come in between? Then the second try finds
 * that message, and says so. */
static sl_rc move_one(sl_dead_job *job, sl_dead_ref *v, sl_err *err)
{
    sl_rc rc = move_once(job, v, 1, err);
    if (rc == SL_REFUSED && job->left_out)
        rc = move_once(job, v, 1, err);
    if (rc == SL_REFUSED && job->left_out)
        return sl_fail(
            err, SL_OPERATOR,
            "the table takes no message for dead letter %lld\nhint: does a trigger or "
            "a rule of it leave some out?",
            (long long)v->dead_id);
    return rc;
}

/* The table refuses one of them or leaves it out (a message with the same idempotency key came in between, or stands in
 * the same chunk; a constraint is younger than the dead letter): in halves, until it is alone and stays. */
static sl_rc move_some(sl_dead_job *job, sl_dead_ref *v, size_t n, sl_err *err)
{
    sl_rc rc = n == 1 ? move_one(job, v, err) : move_once(job, v, n, err);
    if (rc != SL_REFUSED)
        return rc;
    if (n == 1) {
        err->text[strcspn(err->text, "\n")] = '\0';
        job->stays(job->ctx, v->dead_id, err->text);
        job->stayed++;
        return SL_OK;
    }
    rc = move_some(job, v, n / 2, err);
    return rc == SL_OK ? move_some(job, v + n / 2, n - n / 2, err) : rc;
}

static size_t chunk_at(const sl_dead_refs *refs, size_t from)
{
    size_t n = 0;
    int64_t bytes = 0;
    while (from + n < refs->count && n < CHUNK) {
        bytes += refs->v[from + n].bytes;
        if (n > 0 && bytes > CHUNK_BYTES)
            break;
        n++;
    }
    return n;
}

sl_rc sl_dead_move(sl_dead_job *job, sl_dead_refs *refs, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (size_t i = 0, n; rc == SL_OK && i < refs->count; i += n) {
        n = chunk_at(refs, i);
        rc = move_some(job, refs->v + i, n, err);
        if (rc == SL_OK)
            job->step(job->ctx, i + n);
    }
    return rc;
}
