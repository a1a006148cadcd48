/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/settle.h"

#include "claim/consume.h"

/* The statements to run, with room for their parameters. */
typedef struct plan {
    sl_call calls[18];
    bool besides[18]; /* the rows of such a call are counted by another one */
    sl_val in[16][5];
    size_t n, used;
    size_t expected; /* rows that should be touched; what is missing was lost */
} plan;

static void add_call(plan *p, sl_db *db, const char *stmt, const sl_group *g)
{
    sl_val *in = p->in[p->used++];
    in[0] = sl_ints(g->ids, g->n);
    in[1] = sl_ints(g->epochs, g->n);
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt), .in = in };
    p->expected += g->n;
}

/* Where the claim has counted the attempt, it is not counted again. */
static void add_retry(plan *p, sl_db *db, const sl_group *g)
{
    add_call(p, db, "settle/retry", g);
    sl_val *in = p->in[p->used - 1];
    in[2] = sl_ints(g->delays_us, g->n);
    in[3] = sl_texts(g->reasons, g->n);
    in[4] = sl_ints(g->counts, g->n);
}

/* What was added last touches rows that another call touches, too, or not all of them. */
static void is_besides(plan *p, const sl_group *g)
{
    p->besides[p->n - 1] = true;
    p->expected -= g->n;
}

/* Copy, then delete; the copy locks the rows. */
static void add_keep(plan *p, sl_db *db, const sl_group *g)
{
    add_call(p, db, "settle/keep", g);
    p->in[p->used - 1][2] = sl_ints(g->counts, g->n);
    is_besides(p, g);
}

static void add_bury(plan *p, sl_db *db, const sl_group *g)
{
    add_call(p, db, "settle/bury", g);
    p->in[p->used - 1][2] = sl_texts(g->reasons, g->n);
    p->in[p->used - 1][3] = sl_ints(g->counts, g->n);
    is_besides(p, g);
    add_call(p, db, "settle/sent", g);
}

/* Where it is kept, the copy may be what takes it out of the list. */
static void add_gone(plan *p, sl_db *db, const sl_group *g, bool keep)
{
    if (keep)
        add_call(p, db, "consumed/keep", g);
    add_call(p, db, "consumed/sent", g);
    if (keep)
        is_besides(p, g);
}

/* Without order, what was never handed over may always go back. */
static void add_consumed(plan *p, sl_db *db, const sl_groups *all, bool keep)
{
    if (all->gone.n)
        add_gone(p, db, &all->gone, keep);
    if (all->left.n) {
        add_call(p, db, "consumed/bury", &all->left);
        p->in[p->used - 1][1] = sl_texts(all->left.reasons, all->left.n);
        add_call(p, db, "consumed/sent", &all->left);
    }
    if (all->back.n) {
        add_call(p, db, "consumed/unregister", &all->back);
        is_besides(p, &all->back); /* few have a key to let go of */
        add_call(p, db, "consumed/back", &all->back);
        add_call(p, db, "consumed/sent", &all->back);
    }
}

static void add_tx(plan *p, sl_db *db, const char *stmt)
{
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt) };
}

static void make_plan(plan *p, sl_db *db, const sl_groups *all, const sl_settle_how *how)
{
    /* A released message needs no statement where the end of a transaction releases it. */
    bool release = all->released.n && how->attempt_counted;
    bool consumed = all->gone.n || all->left.n || all->back.n;
    bool any =
        all->sent.n || all->retry.n || all->dead.n || release || all->counted.n || consumed;

    if (any && !how->in_transaction)
        add_tx(p, db, "tx/begin");
    if (all->sent.n && how->keep)
        add_keep(p, db, &all->sent);
    if (all->sent.n)
        add_call(p, db, "settle/sent", &all->sent);
    if (all->retry.n)
        add_retry(p, db, &all->retry);
    if (all->dead.n)
        add_bury(p, db, &all->dead);
    if (release)
        add_call(p, db, "settle/release", &all->released);
    if (all->counted.n)
        add_call(p, db, "attempts/uncount", &all->counted);
    add_consumed(p, db, all, how->keep);
    if (any || how->in_transaction)
        add_tx(p, db, "tx/commit");
}

/* The claim has counted these attempts. */
static void discount(const sl_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        g->counts[i]--;
}

sl_rc sl_settle_write(sl_db *db, sl_batch *b, const sl_settle_how *how, size_t *lost,
                      sl_err *err)
{
    sl_groups all;
    plan p = { .n = 0 };
    *lost = 0;
    sl_groups_make(&all, b, how->retry_base_ns, how->retry_max_ns);
    if (how->attempt_counted) {
        discount(&all.sent);
        discount(&all.gone);
        discount(&all.retry);
        discount(&all.dead);
    }
    make_plan(&p, db, &all, how);
    if (p.n == 0)
        return SL_OK;
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    if (rc != SL_OK)
        return rc;
    size_t touched = 0;
    for (size_t i = 0; i < p.n; i++)
        if (p.calls[i].in && !p.besides[i])
            touched += (size_t)p.calls[i].affected;
    *lost = p.expected > touched ? p.expected - touched : 0;
    return SL_OK;
}

sl_rc sl_settle_rehearse(sl_db *db, bool keep, bool consumes, sl_err *err)
{
    sl_group none = { 0 };
    plan p = { .n = 0 };
    add_tx(&p, db, "tx/begin");
    if (keep)
        add_keep(&p, db, &none);
    add_retry(&p, db, &none);
    add_bury(&p, db, &none);
    add_call(&p, db, "settle/release", &none);
    add_call(&p, db, "attempts/count", &none);
    add_call(&p, db, "attempts/uncount", &none);
    add_tx(&p, db, "tx/commit");
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    if (rc == SL_OK && consumes)
        rc = sl_consume_rehearse(db, err);
    return rc == SL_OK && consumes && keep ? sl_consume_rehearse_keep(db, err) : rc;
}
