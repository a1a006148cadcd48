/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/settle.h"

#include "core/clock.h"
#include "core/utf8.h"

#include <assert.h>

enum { REASON_MAX_BYTES = 500 };

/* The messages of one kind of verdict, as the arrays that a statement takes. */
typedef struct group {
    size_t n;
    int64_t *ids, *epochs, *delays_us;
    sl_str *reasons;
} group;

static void group_init(group *g, sl_arena *a, size_t room)
{
    g->n = 0;
    g->ids = sl_arena_alloc(a, room * sizeof *g->ids);
    g->epochs = sl_arena_alloc(a, room * sizeof *g->epochs);
    g->delays_us = sl_arena_alloc(a, room * sizeof *g->delays_us);
    g->reasons = sl_arena_alloc(a, room * sizeof *g->reasons);
}

/* A reason comes from outside and goes into a text column: bounded, printable, and never the
 * cause of a second failure. */
static sl_str clean_reason(sl_arena *a, sl_str reason)
{
    if (!reason.p)
        return SL_NONE;
    if (reason.n > REASON_MAX_BYTES)
        reason.n = REASON_MAX_BYTES;
    size_t good = sl_utf8_prefix(reason);
    char *p = sl_arena_alloc(a, reason.n + 1);
    for (size_t i = 0; i < reason.n; i++) {
        unsigned char c = (unsigned char)reason.p[i];
        bool control = c < 0x20 || c == 0x7f;
        p[i] = control ? ' ' : c >= 0x80 && i >= good ? '?' : (char)c;
    }
    p[reason.n] = '\0';
    return (sl_str){ p, reason.n };
}

static void group_add(group *g, sl_arena *a, const sl_msg *m, const sl_settle_how *how)
{
    int64_t delay_ns = m->delay_ns;
    if (delay_ns < 0)
        delay_ns = sl_backoff_ns((unsigned)m->attempt, how->retry_base_ns, how->retry_max_ns);
    g->ids[g->n] = m->id;
    g->epochs[g->n] = m->epoch;
    g->delays_us[g->n] = delay_ns / 1000;
    g->reasons[g->n] = clean_reason(a, m->reason);
    g->n++;
}

typedef struct groups {
    group sent, retry, dead, released;
} groups;

static group *group_of(groups *all, sl_verdict v)
{
    switch (v) {
    case SL_SENT:
        return &all->sent;
    case SL_RETRY:
    case SL_UNKNOWN: /* at least once: it may arrive twice, never not at all */
        return &all->retry;
    case SL_DEAD:
        return &all->dead;
    case SL_RELEASED:
        return &all->released;
    default:
        return NULL; /* held */
    }
}

static void sort_out(groups *all, sl_batch *b, const sl_settle_how *how)
{
    group_init(&all->sent, &b->arena, b->count);
    group_init(&all->retry, &b->arena, b->count);
    group_init(&all->dead, &b->arena, b->count);
    group_init(&all->released, &b->arena, b->count);
    for (size_t i = 0; i < b->count; i++) {
        assert(b->msgs[i].verdict != SL_PENDING);
        group *g = group_of(all, b->msgs[i].verdict);
        if (g)
            group_add(g, &b->arena, &b->msgs[i], how);
    }
}

/* The statements to run, with room for their parameters. */
typedef struct plan {
    sl_call calls[8];
    sl_val in[6][5];
    size_t n, used;
    size_t expected;     /* rows that should be touched; what is missing was lost */
    const sl_call *copy; /* to the dead letters: counted when the same rows are deleted */
} plan;

static void add_call(plan *p, sl_db *db, const char *stmt, const group *g)
{
    sl_val *in = p->in[p->used++];
    in[0] = sl_ints(g->ids, g->n);
    in[1] = sl_ints(g->epochs, g->n);
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt), .in = in };
    p->expected += g->n;
}

static void add_retry(plan *p, sl_db *db, const group *g, bool attempt_counted)
{
    add_call(p, db, "settle/retry", g);
    sl_val *in = p->in[p->used - 1];
    in[2] = sl_ints(g->delays_us, g->n);
    in[3] = sl_texts(g->reasons, g->n);
    in[4] = sl_int(attempt_counted ? 0 : 1);
}

/* Copy, then delete; the copy locks the rows. */
static void add_bury(plan *p, sl_db *db, const group *g, bool attempt_counted)
{
    add_call(p, db, "settle/bury", g);
    p->in[p->used - 1][2] = sl_texts(g->reasons, g->n);
    p->in[p->used - 1][3] = sl_int(attempt_counted ? 0 : 1);
    p->copy = &p->calls[p->n - 1];
    p->expected -= g->n;
    add_call(p, db, "settle/sent", g);
}

static void add_tx(plan *p, sl_db *db, const char *stmt)
{
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt) };
}

static void make_plan(plan *p, sl_db *db, const groups *all, const sl_settle_how *how)
{
    /* A released message needs no statement where the end of the transaction releases it. */
    bool release = all->released.n && !how->in_transaction;
    bool any = all->sent.n || all->retry.n || all->dead.n || release;

    if (any && !how->in_transaction)
        add_tx(p, db, "tx/begin");
    if (all->sent.n)
        add_call(p, db, "settle/sent", &all->sent);
    if (all->retry.n)
        add_retry(p, db, &all->retry, how->attempt_counted);
    if (all->dead.n)
        add_bury(p, db, &all->dead, how->attempt_counted);
    if (release)
        add_call(p, db, "settle/release", &all->released);
    if (any || how->in_transaction)
        add_tx(p, db, "tx/commit");
}

sl_rc sl_settle_write(sl_db *db, sl_batch *b, const sl_settle_how *how, size_t *lost,
                      sl_err *err)
{
    groups all;
    plan p = { .n = 0 };
    *lost = 0;
    sort_out(&all, b, how);
    make_plan(&p, db, &all, how);
    if (p.n == 0)
        return SL_OK;
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    if (rc != SL_OK)
        return rc;
    size_t touched = 0;
    for (size_t i = 0; i < p.n; i++)
        if (p.calls[i].in && &p.calls[i] != p.copy)
            touched += (size_t)p.calls[i].affected;
    *lost = p.expected > touched ? p.expected - touched : 0;
    return SL_OK;
}

sl_rc sl_settle_rehearse(sl_db *db, sl_err *err)
{
    group none = { 0 };
    plan p = { .n = 0 };
    add_tx(&p, db, "tx/begin");
    add_retry(&p, db, &none, true);
    add_bury(&p, db, &none, true);
    add_call(&p, db, "settle/release", &none);
    add_tx(&p, db, "tx/commit");
    return db->ops->run(db, p.calls, p.n, err);
}
