/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/settle.h"

#include "claim/verdicts.h"

/* The statements to run, with room for their parameters. */
typedef struct plan {
    sl_call calls[10];
    sl_val in[8][5];
    size_t n, used;
    size_t expected;  /* rows that should be touched; what is missing was lost */
    size_t copies[2]; /* calls that copy: counted when the same rows are deleted */
    size_t copies_count;
} plan;

static void add_call(plan *p, sl_db *db, const char *stmt, const sl_group *g)
{
    sl_val *in = p->in[p->used++];
    in[0] = sl_ints(g->ids, g->n);
    in[1] = sl_ints(g->epochs, g->n);
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt), .in = in };
    p->expected += g->n;
}

static void add_retry(plan *p, sl_db *db, const sl_group *g, bool attempt_counted)
{
    add_call(p, db, "settle/retry", g);
    sl_val *in = p->in[p->used - 1];
    in[2] = sl_ints(g->delays_us, g->n);
    in[3] = sl_texts(g->reasons, g->n);
    in[4] = sl_int(attempt_counted ? 0 : 1);
}

/* What was added last copies the rows that the next call deletes; it locks them. */
static void is_copy(plan *p, const sl_group *g)
{
    p->copies[p->copies_count++] = p->n - 1;
    p->expected -= g->n;
}

/* Copy, then delete. */
static void add_keep(plan *p, sl_db *db, const sl_group *g, bool attempt_counted)
{
    add_call(p, db, "settle/keep", g);
    p->in[p->used - 1][2] = sl_int(attempt_counted ? 0 : 1);
    is_copy(p, g);
}

static void add_bury(plan *p, sl_db *db, const sl_group *g, bool attempt_counted)
{
    add_call(p, db, "settle/bury", g);
    p->in[p->used - 1][2] = sl_texts(g->reasons, g->n);
    p->in[p->used - 1][3] = sl_int(attempt_counted ? 0 : 1);
    is_copy(p, g);
    add_call(p, db, "settle/sent", g);
}

static void add_tx(plan *p, sl_db *db, const char *stmt)
{
    p->calls[p->n++] = (sl_call){ .stmt = sl_db_stmt(db, stmt) };
}

static void make_plan(plan *p, sl_db *db, const sl_groups *all, const sl_settle_how *how)
{
    /* A released message needs no statement where the end of the transaction releases it. */
    bool release = all->released.n && !how->in_transaction;
    bool any = all->sent.n || all->retry.n || all->dead.n || release;

    if (any && !how->in_transaction)
        add_tx(p, db, "tx/begin");
    if (all->sent.n && how->keep)
        add_keep(p, db, &all->sent, how->attempt_counted);
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
    sl_groups all;
    plan p = { .n = 0 };
    *lost = 0;
    sl_groups_make(&all, b, how->retry_base_ns, how->retry_max_ns);
    make_plan(&p, db, &all, how);
    if (p.n == 0)
        return SL_OK;
    sl_rc rc = db->ops->run(db, p.calls, p.n, err);
    if (rc != SL_OK)
        return rc;
    size_t touched = 0;
    for (size_t i = 0; i < p.n; i++)
        if (p.calls[i].in)
            touched += (size_t)p.calls[i].affected;
    for (size_t i = 0; i < p.copies_count; i++)
        touched -= (size_t)p.calls[p.copies[i]].affected;
    *lost = p.expected > touched ? p.expected - touched : 0;
    return SL_OK;
}

sl_rc sl_settle_rehearse(sl_db *db, bool keep, sl_err *err)
{
    sl_group none = { 0 };
    plan p = { .n = 0 };
    add_tx(&p, db, "tx/begin");
    if (keep)
        add_keep(&p, db, &none, true);
    add_retry(&p, db, &none, true);
    add_bury(&p, db, &none, true);
    add_call(&p, db, "settle/release", &none);
    add_tx(&p, db, "tx/commit");
    return db->ops->run(db, p.calls, p.n, err);
}
