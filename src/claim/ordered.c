/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/ordered.h"

#include "claim/consume.h"
#include "claim/rows.h"
#include "claim/stretch.h"
#include "claim/verdicts.h"
#include "core/fault.h"
#include "core/mem.h"

enum { COL_KEY = 5 };

/* ---- Lists ---- */

void sl_id_list_add(sl_id_list *l, int64_t id)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->v = sl_realloc(l->v, l->cap * sizeof *l->v);
    }
    l->v[l->count++] = id;
}

void sl_str_list_add(sl_str_list *l, sl_str s)
{
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->v = sl_realloc(l->v, l->cap * sizeof *l->v);
    }
    l->v[l->count++] = s;
}

/* ---- What a turn finds ---- */

static void forget(sl_ordered *o)
{
    o->behind.count = o->scheduled.count = o->served.count = 0;
    o->delayed.count = o->rejoining.count = 0;
}

void sl_ordered_begin(sl_ordered *o, sl_batch *b, int64_t max, int64_t bytes_max)
{
    o->batch = b;
    o->max = max;
    o->bytes_max = bytes_max;
    o->bytes = 0;
    o->over = false;
    sl_keymap_reset(&o->closed);
    forget(o);
}

void sl_ordered_fini(sl_ordered *o)
{
    sl_keymap_fini(&o->closed);
    free(o->behind.v);
    free(o->scheduled.v);
    free(o->delayed.v);
    free(o->rejoining.v);
    free(o->served.v);
    *o = (sl_ordered){ 0 };
}

static void close_key(sl_ordered *o, sl_str key)
{
    if (key.p && !sl_keymap_find(&o->closed, key))
        *sl_keymap_at(&o->closed, sl_arena_copy(&o->batch->arena, key)) = 1;
}

static bool closed(const sl_ordered *o, sl_str key)
{
    return key.p && sl_keymap_find(&o->closed, key) != NULL;
}

static sl_rc add_message(sl_ordered *o, const sl_val *cols, sl_err *err)
{
    o->over |=
        (int64_t)o->batch->count >= o->max || (o->batch->count && o->bytes >= o->bytes_max);
    if (o->over)
        return SL_OK;
    sl_rc rc = sl_claim_row(o->batch, cols, err);
    sl_msg *m = &o->batch->msgs[o->batch->count - 1];
    m->lane = cols[SL_COL_LANE].i;
    o->bytes += (int64_t)m->payload.n;
    return rc;
}

/* The same for a message that is held already. */
static sl_rc add_held(sl_ordered *o, const sl_val *cols, sl_err *err)
{
    size_t had = o->batch->count;
    sl_rc rc = add_message(o, cols, err);
    for (; had < o->batch->count; had++)
        o->batch->msgs[had].held = true;
    return rc;
}

/* Its time has not come: either it waits alone, or its key with it. */
static void add_early(sl_ordered *o, const sl_val *cols, sl_str key)
{
    if (cols[SL_COL_WAIT].i == SL_WAIT_DELAY && o->delays && key.p) {
        sl_id_list_add(&o->delayed, cols[0].i);
        return;
    }
    sl_id_list_add(&o->scheduled, cols[0].i);
    close_key(o, key);
}

sl_rc sl_ordered_row(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_ordered *o = ctx;
    sl_str key = cols[COL_KEY].null ? SL_NONE : cols[COL_KEY].s;
    if (cols[SL_COL_WAIT].i == SL_WAIT_KEY || closed(o, key)) {
        sl_id_list_add(&o->behind, cols[0].i);
    } else if (o->over) {
        return SL_OK; /* its key must not wait for it: an earlier message of it may have been left */
    } else if (cols[SL_COL_WAIT].i != SL_WAIT_NOT) {
        add_early(o, cols, key);
    } else {
        return add_message(o, cols, err);
    }
    return SL_OK;
}

/* Rows of one key come together or at least in order; each key is noted once. */
static void note_served(sl_ordered *o, sl_str key)
{
    if (!key.p)
        return;
    for (size_t i = o->served.count; i-- > 0;)
        if (sl_str_eq(o->served.v[i], key))
            return;
    sl_str_list_add(&o->served, sl_arena_copy(&o->batch->arena, key));
}

sl_rc sl_ordered_due_row(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_ordered *o = ctx;
    sl_str key = cols[COL_KEY].null ? SL_NONE : cols[COL_KEY].s;
    note_served(o, key);
    if (cols[0].null || closed(o, key))
        return SL_OK;
    if (cols[SL_COL_WAIT].i == SL_WAIT_NOT)
        return add_held(o, cols, err);
    add_early(o, cols, key);
    return SL_OK;
}

sl_rc sl_ordered_delayed_row(void *ctx, const sl_val *cols, sl_err *err)
{
    sl_ordered *o = ctx;
    sl_str key = cols[COL_KEY].null ? SL_NONE : cols[COL_KEY].s;
    if (cols[SL_COL_WAIT].i == SL_WAIT_NOT && !closed(o, key))
        return add_held(o, cols, err);
    sl_id_list_add(&o->rejoining, cols[0].i);
    return SL_OK;
}

/* ---- What a turn writes ---- */

/* The statements to run, with room for their parameters. */
typedef struct plan {
    sl_call calls[SL_RUN_MAX];
    sl_val in[SL_RUN_MAX][4];
    size_t n, used;
} plan;

static sl_val *add(plan *p, sl_db *db, const char *stmt)
{
    sl_val *in = p->in[p->used++];
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt), .in = in };
    return in;
}

static void add_tx(plan *p, sl_db *db, const char *stmt)
{
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt) };
}

static void add_dones(plan *p, const sl_ordered_how *how)
{
    for (size_t i = 0; i < how->dones; i++)
        p->calls[p->n++] = how->done[i];
}

static void add_ids(plan *p, sl_db *db, const char *stmt, const int64_t *ids, size_t n)
{
    if (n)
        add(p, db, stmt)[0] = sl_ints(ids, n);
}

static void add_keys(plan *p, sl_db *db, const char *stmt, const sl_str_list *keys)
{
    if (keys->count)
        add(p, db, stmt)[0] = sl_texts(keys->v, keys->count);
}

static void add_retry(plan *p, sl_db *db, const sl_group *g)
{
    sl_val *in = add(p, db, "ordered/retry");
    in[0] = sl_ints(g->ids, g->n);
    in[1] = sl_ints(g->delays_us, g->n);
    in[2] = sl_texts(g->reasons, g->n);
    in[3] = sl_ints(g->counts, g->n);
}

static void add_bury(plan *p, sl_db *db, const sl_group *g)
{
    sl_val *in = add(p, db, "ordered/bury");
    in[0] = sl_ints(g->ids, g->n);
    in[1] = sl_ints(g->epochs, g->n);
    in[2] = sl_texts(g->reasons, g->n);
    in[3] = sl_ints(g->counts, g->n);
    add_ids(p, db, "ordered/sent", g->ids, g->n);
}

/* Copied before they are deleted, by whatever statement. */
static void add_keep(plan *p, sl_db *db, const char *stmt, const sl_group *g)
{
    sl_val *in = add(p, db, stmt);
    in[0] = sl_ints(g->ids, g->n);
    in[1] = sl_ints(g->epochs, g->n);
    in[2] = sl_ints(g->counts, g->n);
    in[3] = sl_ints(g->lanes, g->n);
}

static void add_unknown(plan *p, sl_db *db, const sl_group *g)
{
    if (!g->n)
        return;
    sl_val *in = add(p, db, "consumed/bury");
    in[0] = sl_ints(g->ids, g->n);
    in[1] = sl_texts(g->reasons, g->n);
    add_ids(p, db, "consumed/sent", g->ids, g->n);
}

/* Of what was consumed: these verdicts need no claim. */
static void add_consumed(plan *p, sl_db *db, const sl_groups *g, bool keep)
{
    if (keep)
        add_ids(p, db, "consumed/keep", g->gone.ids, g->gone.n);
    add_ids(p, db, "consumed/sent", g->gone.ids, g->gone.n);
    add_unknown(p, db, &g->left);
}

static void add_back(plan *p, sl_db *db, const sl_group *g)
{
    add_ids(p, db, "consumed/unregister", g->ids, g->n);
    add_ids(p, db, "consumed/back", g->ids, g->n);
    add_ids(p, db, "consumed/sent", g->ids, g->n);
}

/* It was never sent, but later ones of its key may have been by now: for the operator. */
static void add_stranded(plan *p, sl_db *db, const sl_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        g->reasons[i] = SL_STR("not sent: the claim was lost before");
    add_unknown(p, db, g);
}

static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Keys wait for those that failed as for those that are scheduled. Where statements run one by one the
 * last one counts: so the first message of a key comes last. */
static void block_failed(sl_ordered *o, const sl_group *retry)
{
    for (size_t i = 0; i < retry->n; i++)
        sl_id_list_add(&o->scheduled, retry->ids[i]);
    if (o->scheduled.count)
        qsort(o->scheduled.v, o->scheduled.count, sizeof *o->scheduled.v, falling);
}

/* All that may have to be written, in a transaction in which the claims are ours. */
static sl_rc write_all(sl_db *db, sl_ordered *o, const sl_groups *g, const sl_ordered_how *how,
                       sl_err *err)
{
    plan p = { .n = 0 };
    if (how->keep && g->sent.n)
        add_keep(&p, db, "ordered/keep", &g->sent);
    add_ids(&p, db, "ordered/sent", g->sent.ids, g->sent.n);
    if (g->retry.n)
        add_retry(&p, db, &g->retry);
    if (g->dead.n)
        add_bury(&p, db, &g->dead);
    add_ids(&p, db, "attempts/uncount", g->counted.ids, g->counted.n);
    add_consumed(&p, db, g, how->keep != NULL);
    add_back(&p, db, &g->back);
    block_failed(o, &g->retry);
    add_ids(&p, db, "ordered/hold", o->behind.v, o->behind.count);
    add_ids(&p, db, "ordered/hold", o->scheduled.v, o->scheduled.count);
    add_ids(&p, db, "ordered/block", o->scheduled.v, o->scheduled.count);
    add_ids(&p, db, "ordered/delay", o->delayed.v, o->delayed.count);
    add_ids(&p, db, "ordered/rejoin", o->rejoining.v, o->rejoining.count);
    add_keys(&p, db, "ordered/unblock", &o->served);
    add_keys(&p, db, "ordered/rotate", &o->served);
    add_dones(&p, how);
    add_tx(&p, db, "tx/commit");
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    forget(o); /* a pull settles piece by piece */
    return rc;
}

/* A statement that wants bytes deletes a range, and asks of each row whether it is one of them. */
static sl_val *put_ids(sl_val *in, const sl_stmt *stmt, sl_arena *arena, const int64_t *ids,
                       size_t n)
{
    if (stmt->params[0] == SL_T_BYTES) {
        sl_stretch_map(in, arena, ids, n);
        return in + 2;
    }
    in[0] = sl_ints(ids, n);
    return in + 1;
}

static void add_sent(plan *p, sl_db *db, sl_arena *arena, const sl_group *g,
                     const sl_ordered_how *how)
{
    sl_val *in = add(p, db, how->sent);
    sl_val *claims = put_ids(in, sl_db_stmt(db, how->sent), arena, g->ids, g->n);
    claims[0] = how->claims ? how->claims[1] : sl_ints(g->epochs, g->n);
    claims[1] = how->claims ? how->claims[0] : sl_ints(g->lanes, g->n);
}

/* Only deletions: one statement, which checks the epochs itself, and so does the one that copies before it; and what
 * needs no claim. */
static sl_rc write_sent(sl_db *db, sl_arena *arena, const sl_groups *g,
                        const sl_ordered_how *how, size_t *lost, sl_err *err)
{
    plan p = { .n = 0 };
    bool keep = how->keep && g->sent.n;
    size_t parts = how->dones + (g->sent.n > 0) + (g->gone.n > 0);
    if (g->left.n || g->back.n || (how->keep && (g->sent.n || g->gone.n)))
        parts += 2;
    bool tx = how->in_transaction || parts > 1;
    size_t sent_at = SIZE_MAX;
    if (tx && !how->in_transaction)
        add_tx(&p, db, "tx/begin");
    if (keep)
        add_keep(&p, db, how->keep, &g->sent);
    if (g->sent.n) {
        sent_at = p.n;
        add_sent(&p, db, arena, &g->sent, how);
    }
    add_consumed(&p, db, g, how->keep != NULL);
    add_stranded(&p, db, &g->back);
    add_dones(&p, how);
    if (tx)
        add_tx(&p, db, "tx/commit");
    sl_rc rc = p.n ? db->ops->run(db, p.calls, p.n, err) : SL_OK;
    if (rc == SL_OK && sent_at != SIZE_MAX)
        *lost = g->sent.n - (size_t)p.calls[sent_at].affected;
    return rc;
}

/* All were delivered, and one row says so of all, if every claim is still ours; else *written is false. */
static sl_rc write_mark(sl_db *db, const sl_ordered_how *how, bool *written, sl_err *err)
{
    int64_t rows = 0;
    sl_rc rc = sl_db_run1(db, how->mark, how->claims, NULL, NULL, &rows, err);
    *written = rc == SL_OK && rows == 1;
    return rc;
}

/* Locks the claims. *ours: all of them are ours until the transaction ends. */
static sl_rc fence(sl_db *db, const sl_ordered_how *how, bool *ours, sl_err *err)
{
    if (how->in_transaction) {
        *ours = true;
        return SL_OK;
    }
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "tx/begin") }, *how->fence };
    sl_rc rc = db->ops->run(db, calls, 2, err);
    *ours = rc == SL_OK && calls[1].affected == how->fenced;
    return rc;
}

sl_rc sl_ordered_settle(sl_db *db, sl_ordered *o, const sl_ordered_how *how, size_t *lost,
                        sl_err *err)
{
    sl_groups g;
    bool ours;
    *lost = 0;
    sl_groups_make(&g, o->batch, how->retry_base_ns, how->retry_max_ns);
    if (sl_ordered_untried(o->batch))
        o->served.count = 0; /* they were not, and keep their place */
    sl_rc rc = SL_OK;
    bool written = false;
    if (how->mark && !how->keep && g.sent.n && g.sent.n == o->batch->count &&
        !sl_ordered_found(o))
        rc = write_mark(db, how, &written, err);
    if (rc != SL_OK || written)
        return rc;
    if (!g.retry.n && !g.dead.n && !g.counted.n && !g.back.n && !sl_ordered_found(o))
        return write_sent(db, &o->batch->arena, &g, how, lost, err);
    rc = fence(db, how, &ours, err);
    if (rc != SL_OK)
        return rc;
    SL_FAULT("fenced");
    if (ours)
        return write_all(db, o, &g, how, err);
    db->ops->rollback(db);
    rc = write_sent(db, &o->batch->arena, &g, how, lost, err);
    *lost += g.retry.n + g.dead.n;
    return rc;
}

/* ---- Without waiting for the answer ---- */

sl_rc sl_ordered_post_sent(sl_db *db, const sl_ordered *o, sl_batch *b,
                           const sl_ordered_how *how, sl_ordered_post *p, bool *posted,
                           sl_err *err)
{
    sl_groups g;
    plan one = { .n = 0 };
    *posted = false;
    if (!db->ops->post || how->keep || how->dones || how->in_transaction || sl_ordered_found(o))
        return SL_OK;
    sl_groups_make(&g, b, how->retry_base_ns, how->retry_max_ns);
    if (g.sent.n == 0 || g.sent.n != b->count)
        return SL_OK;
    if (how->mark)
        one.calls[0] = (sl_call){ .stmt = sl_db_stmt(db, how->mark), .in = how->claims };
    else
        add_sent(&one, db, &b->arena, &g.sent, how);
    p->call = one.calls[0];
    p->post = (sl_post){ .calls = &p->call, .count = 1 };
    p->sent = g.sent.n;
    p->marked = how->mark != NULL;
    sl_rc rc = db->ops->post(db, &p->post, err);
    *posted = rc == SL_OK;
    return rc;
}

size_t sl_ordered_post_lost(const sl_ordered_post *p, bool *written)
{
    *written = !p->marked || p->call.affected == 1;
    return p->marked ? 0 : p->sent - (size_t)p->call.affected;
}

/* ---- Before the send ---- */

static sl_rc lost_claim(sl_db *db, sl_err *err)
{
    db->ops->rollback(db);
    return sl_fail(err, SL_AGAIN, "the claim was lost before anything was consumed");
}

sl_rc sl_ordered_move(sl_db *db, const sl_ordered_how *how, sl_batch *b, const char *worker,
                      const sl_consume_stamp *stamp, sl_err *err)
{
    bool ours;
    sl_group g = { 0 };
    sl_group_consumed(&g, b);
    sl_val in[] = { sl_ints(g.ids, g.n),        sl_ints(g.epochs, g.n),
                    sl_text(sl_str_of(worker)), sl_int(stamp->journal),
                    sl_int(stamp->opened_by),   sl_int(stamp->position),
                    sl_ints(g.counts, g.n) };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "consumed/take"), .in = in },
                        { .stmt = sl_db_stmt(db, "ordered/sent"), .in = in } };
    sl_rc rc = fence(db, how, &ours, err);
    if (rc != SL_OK)
        return rc;
    if (!ours)
        return lost_claim(db, err);
    rc = db->ops->run(db, calls, 2, err);
    if (rc != SL_OK)
        return rc;
    if (calls[0].affected != (int64_t)g.n || calls[1].affected != (int64_t)g.n)
        return lost_claim(db, err);
    return SL_OK;
}

sl_rc sl_ordered_consume(sl_db *db, const sl_ordered_how *how, sl_batch *b, const char *worker,
                         const sl_consume_stamp *stamp, sl_err *err)
{
    sl_rc rc = sl_ordered_move(db, how, b, worker, stamp, err);
    return rc == SL_OK ? sl_db_run1(db, "tx/commit", NULL, NULL, NULL, NULL, err) : rc;
}

sl_rc sl_ordered_count(sl_db *db, sl_batch *b, sl_err *err)
{
    int64_t *ids = sl_arena_alloc(&b->arena, (b->count + 1) * sizeof *ids);
    for (size_t i = 0; i < b->count; i++) {
        ids[i] = b->msgs[i].id;
        b->msgs[i].counted = true;
    }
    sl_val in = sl_ints(ids, b->count);
    return sl_db_run1(db, "attempts/count", &in, NULL, NULL, NULL, err);
}

static sl_rc read_any(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(bool *)ctx = cols[0].i != 0;
    return SL_OK;
}

sl_rc sl_ordered_peek(sl_db *db, const char *stmt, const sl_val *in, bool *any, sl_err *err)
{
    return sl_db_run1(db, stmt, in, read_any, any, NULL, err);
}

sl_rc sl_ordered_rehearse_keep(sl_db *db, const char *own, bool consumes, sl_err *err)
{
    plan p = { .n = 0 };
    sl_group none = { 0 };
    add_tx(&p, db, "tx/begin");
    add_keep(&p, db, "ordered/keep", &none);
    add_keep(&p, db, own, &none);
    add_tx(&p, db, "tx/commit");
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    return rc == SL_OK && consumes ? sl_consume_rehearse_keep(db, err) : rc;
}

sl_rc sl_ordered_rehearse_sent(sl_db *db, const char *sent, sl_err *err)
{
    plan p = { .n = 0 };
    sl_arena arena = { 0 };
    add_sent(&p, db, &arena, &(sl_group){ 0 }, &(sl_ordered_how){ .sent = sent });
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    sl_arena_fini(&arena);
    return rc;
}

sl_rc sl_ordered_rehearse(sl_db *db, bool consumes, sl_err *err)
{
    static const char *const stmts[] = { "ordered/sent",   "ordered/retry",   "ordered/bury",
                                         "ordered/hold",   "ordered/block",   "ordered/delay",
                                         "ordered/rejoin", "ordered/unblock", "ordered/rotate",
                                         "attempts/count", "attempts/uncount" };
    plan p = { .n = 0 };
    sl_group none = { 0 };
    add_tx(&p, db, "tx/begin");
    for (size_t i = 0; i < sizeof stmts / sizeof stmts[0]; i++) {
        sl_val *in = add(&p, db, stmts[i]);
        bool keys = p.calls[p.n - 1].stmt->params[0] == SL_T_TEXTS;
        in[0] = keys ? sl_texts(none.reasons, 0) : sl_ints(none.ids, 0);
        in[1] = sl_ints(none.ids, 0);
        in[2] = sl_texts(none.reasons, 0);
        in[3] = sl_ints(none.ids, 0);
    }
    add_tx(&p, db, "tx/commit");
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    return rc == SL_OK && consumes ? sl_consume_rehearse(db, err) : rc;
}
