/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/requeue.h"

#include "core/buf.h"
#include "core/mem.h"

/* A transaction takes at most so much, but for one larger message. */
enum { CHUNK = 500, CHUNK_BYTES = 16 << 20 };

/* ---- Rows ---- */

sl_rc sl_refs_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_refs *r = ctx;
    if (r->count == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->v = sl_realloc(r->v, r->cap * sizeof *r->v);
    }
    r->v[r->count++] = (sl_ref){ .row_id = cols[0].i, .id = cols[1].i, .bytes = cols[2].i };
    return SL_OK;
}

static int by_id(const void *a, const void *b)
{
    const sl_ref *x = a;
    const sl_ref *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->row_id > y->row_id) - (x->row_id < y->row_id);
}

/* One that was named twice stands beside itself. */
void sl_refs_sort(sl_refs *r)
{
    size_t kept = 0;
    if (r->count)
        qsort(r->v, r->count, sizeof *r->v, by_id);
    for (size_t i = 0; i < r->count; i++)
        if (kept == 0 || r->v[kept - 1].row_id != r->v[i].row_id)
            r->v[kept++] = r->v[i];
    r->count = kept;
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

size_t sl_refs_missing(const sl_refs *refs, const int64_t *row_ids, size_t n, int64_t *missing)
{
    size_t found = 0;
    int64_t *have = sl_alloc((refs->count + 1) * sizeof *have);
    for (size_t i = 0; i < refs->count; i++)
        have[i] = refs->v[i].row_id;
    qsort(have, refs->count, sizeof *have, by_number);
    for (size_t i = 0; i < n; i++)
        if (!bsearch(&row_ids[i], have, refs->count, sizeof *have, by_number))
            missing[found++] = row_ids[i];
    free(have);
    return found;
}

void sl_refs_fini(sl_refs *refs)
{
    free(refs->v);
    *refs = (sl_refs){ 0 };
}

/* ---- Moving ---- */

/* What one transaction takes. */
typedef struct chunk {
    sl_ref *v;
    size_t n;
    size_t at; /* where the last answer was found: they come nearly in this order */
    size_t locked;
    int64_t row_ids[CHUNK], ids[CHUNK]; /* parameters: first of all, then of those that go */
    size_t going;
    sl_buf reasons[CHUNK]; /* by place; empty: none */
} chunk;

static size_t place_of(chunk *c, int64_t row_id)
{
    for (size_t i = 0; i < c->n; i++, c->at = (c->at + 1) % c->n)
        if (c->v[c->at].row_id == row_id)
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
static sl_rc lock(const sl_requeue *job, chunk *c, sl_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        c->v[i].there = false;
        c->row_ids[i] = c->v[i].row_id;
        c->ids[i] = c->v[i].id;
    }
    sl_val in[] = { sl_ints(c->row_ids, c->n), sl_ints(c->ids, c->n) };
    size_t n = 2;
    sl_call calls[] = {
        { .stmt = sl_db_stmt(job->db, "tx/begin") },
        { .stmt = sl_db_stmt(job->db, job->how.lock), .in = in, .row = note_locked, .ctx = c },
        { .in = in, .row = note_taken, .ctx = c },
    };
    if (job->how.taken)
        calls[n++].stmt = sl_db_stmt(job->db, job->how.taken);
    return job->db->ops->run(job->db, calls, n, err);
}

/* The table may leave out what is inserted: ours does where an idempotency key is registered, and so may a trigger or a
 * rule of someone else. Then nothing is deleted, either. */
static sl_rc check_resent(sl_requeue *job, const chunk *c, int64_t inserted, sl_err *err)
{
    job->left_out = inserted != (int64_t)c->going;
    if (!job->left_out)
        return SL_OK;
    job->db->ops->rollback(job->db);
    return sl_fail(err, SL_REFUSED, "the table took %lld of %zu messages", (long long)inserted,
                   c->going);
}

static sl_rc move_locked(sl_requeue *job, chunk *c, sl_err *err)
{
    c->going = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->v[i].there)
            continue;
        c->row_ids[c->going] = c->v[i].row_id;
        c->ids[c->going++] = c->v[i].id;
    }
    sl_val in[] = { sl_ints(c->row_ids, c->going), sl_ints(c->ids, c->going) };
    const char *stmts[] = { job->how.unregister, job->how.insert, job->how.drop };
    sl_call calls[3];
    const sl_call *insert = NULL;
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        if (!stmts[i])
            continue;
        if (i == 1)
            insert = &calls[n];
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(job->db, stmts[i]), .in = in };
    }
    sl_rc rc = job->db->ops->run(job->db, calls, n, err);
    if (rc == SL_OK && insert)
        rc = check_resent(job, c, insert->affected, err);
    return rc == SL_OK ? sl_db_run1(job->db, "tx/commit", NULL, NULL, NULL, NULL, err) : rc;
}

static void count(sl_requeue *job, const chunk *c)
{
    job->done += c->going;
    job->gone += c->n - c->locked;
    job->stayed += c->locked - c->going;
    for (size_t i = 0; i < c->n; i++)
        if (c->reasons[i].n)
            job->stays(job->ctx, &c->v[i], sl_buf_text(&c->reasons[i]));
}

static sl_rc move_once(sl_requeue *job, sl_ref *v, size_t n, sl_err *err)
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
static sl_rc move_one(sl_requeue *job, sl_ref *v, sl_err *err)
{
    sl_rc rc = move_once(job, v, 1, err);
    if (rc == SL_REFUSED && job->left_out && job->how.taken)
        rc = move_once(job, v, 1, err);
    if (rc == SL_REFUSED && job->left_out)
        return sl_fail(err, SL_OPERATOR,
                       "the table takes no message for %s %lld\nhint: does a trigger or a rule "
                       "of it leave some out?",
                       job->how.noun, (long long)(job->how.by_row ? v->row_id : v->id));
    return rc;
}

/* The table refuses one of them or leaves it out (a message with the same idempotency key came in between, or stands in
 * the same chunk; a constraint is younger than the row): in halves, until it is alone and stays. */
static sl_rc move_some(sl_requeue *job, sl_ref *v, size_t n, sl_err *err)
{
    sl_rc rc = n == 1 ? move_one(job, v, err) : move_once(job, v, n, err);
    if (rc != SL_REFUSED)
        return rc;
    if (n == 1) {
        err->text[strcspn(err->text, "\n")] = '\0';
        job->stays(job->ctx, v, err->text);
        job->stayed++;
        return SL_OK;
    }
    rc = move_some(job, v, n / 2, err);
    return rc == SL_OK ? move_some(job, v + n / 2, n - n / 2, err) : rc;
}

static size_t chunk_at(const sl_refs *refs, size_t from)
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

sl_rc sl_requeue_run(sl_requeue *job, sl_refs *refs, sl_err *err)
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
