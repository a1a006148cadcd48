/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first message of a key becomes a dead letter. A node may have it in flight at this very moment, and by strategy
 * lanes nothing in the database says so. Hence two steps, each a transaction:
 *
 *   1. The key is parked. From the commit on, nobody takes anything of it.
 *   2. Can anybody have it from before? Then nothing is done, and it is asked again for a while.
 *
 * Nobody can, if the message's own time has not come even now: so it had not when the key was parked, and who set that
 * time had the message and has let go of it. Else the marks of each strategy are looked at: the lock on the key
 * (advisory, and guard while it leases), the turns (guard), the lease (skip-locked), and for lanes the node that owns
 * the lane. It has it no more if it owns the lane by a later epoch than that of the park; or if it has held the message
 * since, or settled it: within a node a lane has one turn at a time.
 */
#include "cli/keys.h"

#include "core/clock.h"
#include "core/mem.h"
#include "member/nodes.h"

#include <poll.h>

enum { LOOK_MS = 50 };
#define PRUNE_NS (SL_SEC)

#define SKIPPED "skipped by an operator"

typedef struct view {
    bool there, parked, by_hand, later, doubt;
    int64_t id;
    char who[160]; /* may have it in flight; empty: nobody that is known */
} view;

typedef struct attempt {
    view key;
    bool message; /* it is there, and locked by us */
    bool parked;  /* it is, itself */
    bool locked;  /* the key is, against advisory and guard */
} attempt;

/* ---- Looking ---- */

static bool name(view *v, const sl_val *col, const char *what)
{
    if (!col->null)
        snprintf(v->who, sizeof v->who, "%s%.*s", what, col->s.n < 120 ? (int)col->s.n : 120,
                 col->s.p);
    return !col->null;
}

static sl_rc read_view(void *ctx, const sl_val *c, sl_err *err)
{
    (void)err;
    view *v = ctx;
    *v = (view){ .there = true,
                 .parked = c[0].i != 0,
                 .by_hand = c[1].i != 0,
                 .id = c[2].null ? 0 : c[2].i,
                 .later = c[3].i != 0,
                 .doubt = c[4].i != 0 };
    /* Parked by whatever else, nothing is known of that moment. */
    bool lane_counts = !v->parked || !v->by_hand || v->doubt;
    if (!name(v, &c[5], "worker ") && !name(v, &c[6], "worker ") && lane_counts)
        name(v, &c[7], "node ");
    return SL_OK;
}

static sl_rc look(const sl_key_skip *s, view *v, sl_err *err)
{
    sl_val in = sl_text(s->key);
    *v = (view){ 0 };
    return sl_db_run1(s->db, "keys/look", &in, read_view, v, NULL, err);
}

sl_rc sl_keys_first(sl_db *db, sl_str key, int64_t *id, sl_err *err)
{
    view v;
    sl_rc rc = look(&(sl_key_skip){ .db = db, .key = key }, &v, err);
    *id = rc == SL_OK && v.there ? v.id : 0;
    return rc;
}

/* ---- The second step ---- */

static sl_rc read_message(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    attempt *a = ctx;
    a->message = true;
    a->parked = cols[1].i != 0;
    return SL_OK;
}

static sl_rc read_lock(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)cols;
    (void)err;
    ((attempt *)ctx)->locked = true;
    return SL_OK;
}

/* Opens the transaction. Messages are locked before keys, as a settle does. */
static sl_rc lock(const sl_key_skip *s, attempt *a, sl_err *err)
{
    sl_db *db = s->db;
    sl_buf claim = { 0 };
    sl_buf_putc(&claim, 'k');
    sl_buf_put(&claim, s->key.p, s->key.n);
    sl_str text = { claim.p, claim.n };
    sl_val id = sl_int(s->id);
    sl_val key = sl_text(s->key);
    sl_val over[] = { sl_texts(&text, 1), sl_int(0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "tx/begin") },
        { .stmt = sl_db_stmt(db, "keys/lock_message"),
          .in = &id,
          .row = read_message,
          .ctx = a },
        { .stmt = sl_db_stmt(db, "keyed/lock"), .in = over, .row = read_lock, .ctx = a },
        { .stmt = sl_db_stmt(db, "keys/lock"), .in = &key },
    };
    sl_call more[] = {
        { .stmt = sl_db_stmt(db, "guard/takeover"), .in = over },
        { .stmt = sl_db_stmt(db, "guard/tidy"), .in = &over[1] },
        { .stmt = sl_db_stmt(db, "keys/look"), .in = &key, .row = read_view, .ctx = &a->key },
    };
    *a = (attempt){ 0 };
    sl_rc rc = db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
    /* Turns that are over are taken over only by who has the lock. */
    if (rc == SL_OK)
        rc = a->locked ? db->ops->run(db, more, 3, err) : db->ops->run(db, more + 2, 1, err);
    sl_buf_fini(&claim);
    return rc;
}

static bool may_be_in_flight(const attempt *a)
{
    if (!a->message)
        return true;
    return !a->key.later && (!a->locked || *a->key.who);
}

/* Ends the transaction. */
static sl_rc bury(const sl_key_skip *s, sl_err *err)
{
    sl_db *db = s->db;
    sl_val in[] = { sl_int(s->id), sl_text(SL_STR(SKIPPED)) };
    sl_val ids = sl_ints(&s->id, 1);
    sl_val key = sl_text(s->key);
    sl_call calls[4] = {
        { .stmt = sl_db_stmt(db, "keys/bury"), .in = in },
        { .stmt = sl_db_stmt(db, "ordered/sent"), .in = &ids },
    };
    size_t n = 2;
    if (s->key.p && !s->stays)
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(db, "keys/go_on"), .in = &key };
    calls[n++] = (sl_call){ .stmt = sl_db_stmt(db, "tx/commit") };
    sl_rc rc = db->ops->run(db, calls, n, err);
    return rc == SL_OK ? sl_db_run1(db, "wake/call", NULL, NULL, NULL, NULL, err) : rc;
}

/* *done, or it is to be looked at again. */
static sl_rc try_now(const sl_key_skip *s, view *v, bool *done, sl_err *err)
{
    attempt a;
    *done = false;
    sl_rc rc = lock(s, &a, err);
    if (rc != SL_OK)
        return rc;
    *v = a.key;
    if (a.key.there && a.key.parked && a.key.id == s->id && !may_be_in_flight(&a)) {
        *done = true;
        return bury(s, err);
    }
    s->db->ops->rollback(s->db);
    return SL_OK;
}

/* ---- Both ---- */

/* A key that is due is being delivered, or will be at once: it can be had when that has failed. */
static sl_rc park_and_try(const sl_key_skip *s, view *v, bool *done, sl_err *err)
{
    sl_val in = sl_texts(&s->key, 1);
    bool parked;
    if (!v->later && *v->who)
        return SL_OK;
    sl_rc rc = sl_keys_park(s->db, s->names, s->key, SL_NONE, &parked, err);
    if (rc == SL_OK && parked)
        rc = try_now(s, v, done, err);
    if (rc == SL_OK && parked && !*done)
        rc = sl_db_run1(s->db, "keys/resume", &in, NULL, NULL, NULL, err);
    return rc;
}

static sl_rc fail_changed(const sl_key_skip *s, const view *v, sl_err *err)
{
    if (!v->there || v->id == 0)
        return sl_fail(err, SL_OPERATOR,
                       "message %lld is gone, and its key waits for nothing: it was delivered "
                       "meanwhile, or given up",
                       (long long)s->id);
    return sl_fail(err, SL_OPERATOR,
                   "message %lld is not the first of its key: that is message %lld\nhint: it "
                   "was delivered meanwhile, or given up; see 'sluice keys list'",
                   (long long)s->id, (long long)v->id);
}

static sl_rc fail_busy(const sl_key_skip *s, const view *v, sl_err *err)
{
    return sl_fail(err, SL_OPERATOR,
                   "message %lld may be in flight: %s has it, or had it when the key was "
                   "parked; nothing was changed\nhint: try again, wait longer with --wait, or "
                   "stop that node",
                   (long long)s->id, *v->who ? v->who : "a worker");
}

/* Nodes that are dead own nothing, once they are pruned. */
static sl_rc prune(const sl_key_skip *s, int64_t *next_ns, sl_err *err)
{
    size_t pruned;
    if (sl_now_ns() < *next_ns)
        return SL_OK;
    *next_ns = sl_now_ns() + PRUNE_NS;
    return sl_nodes_prune(s->db, &pruned, err);
}

static sl_rc skip_first(sl_key_skip *s, sl_err *err)
{
    view v;
    bool done = false;
    int64_t prune_ns = 0;
    int64_t until_ns = sl_now_ns() + s->wait_ns;
    sl_rc rc = look(s, &v, err);
    s->stays = v.parked && v.by_hand;
    while (rc == SL_OK) {
        if (!v.there || v.id != s->id)
            return fail_changed(s, &v, err);
        rc = prune(s, &prune_ns, err);
        if (rc == SL_OK)
            rc = v.parked ? try_now(s, &v, &done, err) : park_and_try(s, &v, &done, err);
        if (rc != SL_OK || done)
            return rc;
        if (sl_now_ns() >= until_ns)
            return fail_busy(s, &v, err);
        poll(NULL, 0, LOOK_MS);
        rc = look(s, &v, err);
    }
    return rc;
}

/* Its time is never: nobody takes it. */
static sl_rc skip_alone(const sl_key_skip *s, sl_err *err)
{
    attempt a = { 0 };
    sl_val id = sl_int(s->id);
    sl_call calls[] = {
        { .stmt = sl_db_stmt(s->db, "tx/begin") },
        { .stmt = sl_db_stmt(s->db, "keys/lock_message"),
          .in = &id,
          .row = read_message,
          .ctx = &a },
    };
    sl_rc rc = s->db->ops->run(s->db, calls, 2, err);
    if (rc != SL_OK)
        return rc;
    if (a.message && a.parked)
        return bury(s, err);
    s->db->ops->rollback(s->db);
    return sl_fail(err, SL_OPERATOR, "message %lld is parked no longer", (long long)s->id);
}

sl_rc sl_keys_skip(sl_key_skip *s, sl_err *err)
{
    s->stays = false;
    return s->key.p ? skip_first(s, err) : skip_alone(s, err);
}
