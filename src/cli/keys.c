/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/keys.h"

#include "core/buf.h"
#include "core/mem.h"

/* A transaction takes so many keys; and no more messages than this are counted behind one. */
enum { CHUNK = 500, COUNT_MAX = 1000000 };

/* ---- Reading ---- */

enum { FILTERS = 6 };

static sl_val number_or_null(int64_t n)
{
    sl_val v = sl_int(n);
    v.null = n == 0;
    return v;
}

/* The first parameters of every statement that has filters. */
static void put_filters(sl_val in[FILTERS], const sl_keys_filter *f)
{
    in[0] = sl_text(f->key);
    in[1] = number_or_null(f->message);
    in[2] = sl_text(f->topic);
    in[3] = sl_text(f->prefix);
    in[4] = sl_int(f->state);
    in[5] = number_or_null(f->older_us);
}

static sl_rc read_counts(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(sl_keys_counts *)ctx = (sl_keys_counts){ cols[0].i, cols[1].i, cols[2].i };
    return SL_OK;
}

sl_rc sl_keys_count(sl_keys_counts *out, sl_db *db, const sl_keys_filter *f, sl_err *err)
{
    sl_val in[FILTERS];
    put_filters(in, f);
    return sl_db_run1(db, "keys/count", in, read_counts, out, NULL, err);
}

sl_rc sl_keys_list(sl_db *db, const sl_keys_filter *f, int64_t limit, sl_row_fn row, void *ctx,
                   sl_err *err)
{
    sl_val in[FILTERS + 2];
    put_filters(in, f);
    in[FILTERS] = sl_int(limit);
    in[FILTERS + 1] = sl_int(COUNT_MAX + 1);
    return sl_db_run1(db, "keys/list", in, row, ctx, NULL, err);
}

static sl_rc add_ref(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    sl_key_refs *r = ctx;
    bool alone = cols[SL_KEYS_ALONE].i != 0;
    if (r->count == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->v = sl_realloc(r->v, r->cap * sizeof *r->v);
    }
    r->v[r->count++] = (sl_key_ref){
        .key = alone ? SL_NONE : sl_arena_copy(&r->arena, cols[SL_KEYS_KEY].s),
        .id = cols[SL_KEYS_ID].null ? 0 : cols[SL_KEYS_ID].i,
        .attempts = cols[SL_KEYS_ATTEMPTS].i,
        .behind = cols[SL_KEYS_BEHIND].i,
        .parked = cols[SL_KEYS_IS_PARKED].i != 0,
        .by_hand = cols[SL_KEYS_BY_HAND].i != 0,
    };
    return SL_OK;
}

sl_rc sl_keys_find(sl_key_refs *out, sl_db *db, const sl_keys_filter *f, sl_err *err)
{
    return sl_keys_list(db, f, INT64_MAX, add_ref, out, err);
}

void sl_key_refs_fini(sl_key_refs *refs)
{
    free(refs->v);
    sl_arena_fini(&refs->arena);
    *refs = (sl_key_refs){ 0 };
}

/* ---- retry and resume ---- */

/* The messages before the keys: that is the order in which a settle locks them. */
static sl_rc move_keys(sl_keys_job *job, const sl_str *keys, size_t n, sl_err *err)
{
    sl_val in = sl_texts(keys, n);
    sl_db *db = job->db;
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, job->resume ? "keys/resume_heads" : "keys/retry_heads"),
          .in = &in },
        { .stmt = sl_db_stmt(db, job->resume ? "keys/resume" : "keys/retry"), .in = &in },
        { .stmt = sl_db_stmt(db, "tx/commit") },
    };
    sl_rc rc = n ? db->ops->run(db, calls, sizeof calls / sizeof calls[0], err) : SL_OK;
    if (rc == SL_OK && n)
        job->keys += calls[2].affected;
    return rc;
}

static sl_rc move_messages(sl_keys_job *job, const int64_t *ids, size_t n, sl_err *err)
{
    sl_val in = sl_ints(ids, n);
    int64_t affected = 0;
    if (n == 0)
        return SL_OK;
    sl_rc rc = sl_db_run1(job->db, "keys/resume_messages", &in, NULL, NULL, &affected, err);
    job->messages += affected;
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const sl_str *x = a;
    const sl_str *y = b;
    int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

static sl_rc move_chunk(sl_keys_job *job, const sl_key_ref *v, size_t n, sl_err *err)
{
    sl_str keys[CHUNK];
    int64_t ids[CHUNK];
    size_t nkeys = 0;
    size_t nids = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].key.p)
            keys[nkeys++] = v[i].key;
        else
            ids[nids++] = v[i].id;
    }
    qsort(keys, nkeys, sizeof *keys, by_key);
    sl_rc rc = move_keys(job, keys, nkeys, err);
    return rc == SL_OK ? move_messages(job, ids, nids, err) : rc;
}

sl_rc sl_keys_move(sl_keys_job *job, const sl_key_refs *refs, sl_err *err)
{
    sl_rc rc = SL_OK;
    for (size_t i = 0, n; rc == SL_OK && i < refs->count; i += n) {
        n = refs->count - i < CHUNK ? refs->count - i : CHUNK;
        rc = move_chunk(job, refs->v + i, n, err);
        if (rc == SL_OK)
            job->step(job->ctx, i + n);
    }
    /* Nodes that sleep look for keys that are due only now and then. */
    return rc == SL_OK ? sl_db_run1(job->db, "wake/call", NULL, NULL, NULL, NULL, err) : rc;
}

/* ---- park ---- */

static sl_rc read_bool(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = !cols[0].null && cols[0].i;
    return SL_OK;
}

static sl_rc see_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)cols;
    (void)err;
    *(bool *)ctx = true;
    return SL_OK;
}

/* A column that was there when the table was adopted may hold what only its owner can compute. */
static sl_rc check_lane(sl_db *db, const sl_names *names, sl_err *err)
{
    bool computed = false;
    sl_buf quoted = { 0 };
    sl_names_apply(names, "sluice_outbox", &quoted);
    sl_val in[] = { sl_text((sl_str){ quoted.p, quoted.n }),
                    sl_text(sl_str_of(sl_names_column(names, "lane"))) };
    sl_rc rc = sl_db_run1(db, "schema/computed", in, read_bool, &computed, NULL, err);
    sl_buf_fini(&quoted);
    if (rc != SL_OK || computed)
        return rc;
    db->ops->rollback(db);
    return sl_fail(
        err, SL_OPERATOR,
        "the lane of a key that does not wait is not known\nhint: column '%s' is not "
        "computed by the database; a key that is blocked can be parked",
        sl_names_column(names, "lane"));
}

/* The fence is drawn once others can see that the key is parked. */
static sl_rc draw_fence(sl_db *db, const sl_val *key, sl_err *err)
{
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "epoch/next") },
        { .stmt = sl_db_stmt(db, "keys/fence"), .in = key },
        { .stmt = sl_db_stmt(db, "tx/commit") },
    };
    return db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
}

sl_rc sl_keys_park(sl_db *db, const sl_names *names, sl_str key, sl_str reason, bool *parked,
                   sl_err *err)
{
    bool there = false;
    sl_val in[] = { sl_text(key), sl_text(reason) };
    sl_call look[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "keys/look"), .in = in, .row = see_row, .ctx = &there },
    };
    /* Locked by the first of them, the key cannot be settled before the commit: so the second sees what may be in
     * flight. */
    sl_call park[] = {
        { .stmt = sl_db_stmt(db, "keys/park"), .in = in },
        { .stmt = sl_db_stmt(db, "keys/doubt"), .in = in },
        { .stmt = sl_db_stmt(db, "tx/commit") },
    };
    *parked = false;
    sl_rc rc = db->ops->run(db, look, 2, err);
    if (rc == SL_OK && !there)
        rc = check_lane(db, names, err);
    if (rc == SL_OK)
        rc = db->ops->run(db, park, 1, err);
    if (rc == SL_OK && park[0].affected == 0) { /* it is parked already */
        db->ops->rollback(db);
        return SL_OK;
    }
    if (rc == SL_OK)
        rc = db->ops->run(db, park + 1, 2, err);
    *parked = rc == SL_OK;
    return rc == SL_OK ? draw_fence(db, in, err) : rc;
}
