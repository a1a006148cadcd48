/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advisory: lock the key, deliver, delete, commit, in one transaction that stays open until the
 * verdict. A crash frees the keys at once, since the server lets go. The transaction is bounded by
 * `lease`, on both sides: the server ends one that idles longer. On SQLite the write transaction
 * itself is the lock: others wait while one delivers.
 */
#include "claim/keyed.h"
#include "core/clock.h"
#include "core/mem.h"

/* How often it is looked whether the server is still there. Time that a process did not see go by is
 * time, too. */
#define ALIVE_NS SL_MS

typedef struct advisory_claim {
    sl_claim base;
    sl_keyed keyed;
    bool in_transaction;
    int64_t asked_ns; /* before the transaction began */
    int64_t alive_ns; /* when the server is looked for again */
} advisory_claim;

extern const sl_claim_ops sl_claim_advisory;

static advisory_claim *advisory_of(sl_claim *c)
{
    return (advisory_claim *)c;
}

static sl_rc settle(advisory_claim *c, size_t *lost, sl_err *err)
{
    sl_ordered_how how = {
        .in_transaction = true,
        .sent = "ordered/sent",
        .keep = c->keyed.conf.keep ? "ordered/keep" : NULL,
        .retry_base_ns = c->keyed.conf.retry_base_ns,
        .retry_max_ns = c->keyed.conf.retry_max_ns,
    };
    c->in_transaction = false;
    return sl_ordered_settle(c->keyed.db, &c->keyed.found, &how, lost, err);
}

static sl_rc read_locked(advisory_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    sl_val in[3][2];
    sl_call calls[4] = { { .stmt = sl_db_stmt(c->keyed.db, "epoch/next") } };
    size_t n = 1 + sl_keyed_read(&c->keyed, b, max, calls + 1, in);
    c->in_transaction = true;
    sl_rc rc = c->keyed.db->ops->run(c->keyed.db, calls, n, err);
    sl_batch_sort(b);
    return rc;
}

static sl_rc advisory_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    advisory_claim *c = advisory_of(base);
    size_t lost;
    bool locked;
    c->asked_ns = sl_now_ns();
    c->alive_ns = 0;
    sl_rc rc = sl_keyed_lock(&c->keyed, max, &locked, err);
    if (rc != SL_OK || !locked)
        return rc;
    rc = read_locked(c, b, max, err);
    if (rc == SL_OK && b->count == 0) /* what only waits is put aside */
        rc = settle(c, &lost, err);
    return rc;
}

static int64_t advisory_trusted(const sl_claim *base)
{
    const advisory_claim *c = (const advisory_claim *)base;
    return sl_claim_trusted_ns(&c->keyed.conf, c->asked_ns);
}

static sl_rc advisory_hold(sl_claim *base, const sl_batch *b, sl_err *err)
{
    (void)b;
    advisory_claim *c = advisory_of(base);
    int64_t now_ns = sl_now_ns();
    /* A server that went away has let go of the keys, and its next life knows nothing of us. */
    if (now_ns >= c->alive_ns && !c->keyed.db->ops->alive(c->keyed.db))
        return sl_fail(err, SL_AGAIN, "the connection is gone, and with it the locks");
    if (now_ns >= c->alive_ns)
        c->alive_ns = now_ns + ALIVE_NS;
    if (now_ns < sl_claim_ends_ns(&c->keyed.conf, c->asked_ns))
        return SL_OK;
    return sl_fail(err, SL_AGAIN,
                   "the sink took longer than a transaction may last\nhint: a longer lease, a "
                   "smaller batch, or another strategy");
}

static sl_rc advisory_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    sl_keyed_ends(&advisory_of(base)->keyed, b);
    return settle(advisory_of(base), lost, err);
}

/* Nothing is durable before the transaction ends, and with it the claim. */
static sl_rc advisory_count(sl_claim *base, sl_batch *b, bool *again, sl_err *err)
{
    *again = true;
    return sl_ordered_count(advisory_of(base)->keyed.db, b, err);
}

static sl_rc advisory_peek(sl_claim *base, bool *any, sl_err *err)
{
    return sl_keyed_peek(&advisory_of(base)->keyed, "ordered/peek", any, err);
}

static void advisory_close(sl_claim *base)
{
    advisory_claim *c = advisory_of(base);
    if (c->in_transaction)
        c->keyed.db->ops->rollback(c->keyed.db);
    sl_keyed_fini(&c->keyed);
    free(c);
}

static sl_rc advisory_open(sl_claim **out, sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    advisory_claim *c = sl_alloc(sizeof *c);
    c->base.ops = &sl_claim_advisory;
    sl_rc rc = sl_keyed_open(&c->keyed, db, conf, false, err);
    if (rc == SL_OK && conf->keep)
        rc = sl_ordered_rehearse_keep(db, "ordered/keep", conf->consumes, err);
    if (rc == SL_OK)
        *out = &c->base;
    else
        advisory_close(&c->base);
    return rc;
}

const sl_claim_ops sl_claim_advisory = {
    .name = "advisory",
    .ordered = true,
    .in_transaction = true,
    .open = advisory_open,
    .take = advisory_take,
    .hold = advisory_hold,
    .trusted_ns = advisory_trusted,
    .settle = advisory_settle,
    .peek = advisory_peek,
    .count = advisory_count,
    .close = advisory_close,
};
