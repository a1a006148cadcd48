/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skip-locked: any worker takes any message. No order is promised, in exchange nothing is ever
 * waited for. Two ways to hold what was taken:
 *
 *   transaction  the rows stay locked in an open transaction until the verdict. One write per
 *                message, and a crash frees them at once. The transaction is bounded by `lease`,
 *                on both sides: the server ends one that idles longer.
 *   lease        the rows are marked with an end on the database's clock and with an epoch, and
 *                the transaction is over before anything is sent. Renewed after a third of it.
 */
#include "claim/claim.h"
#include "claim/consume.h"
#include "claim/lease.h"
#include "claim/ordered.h"
#include "claim/rows.h"
#include "claim/settle.h"
#include "core/clock.h"
#include "core/mem.h"

typedef struct skip_claim {
    sl_claim base;
    sl_db *db;
    sl_claim_conf conf;
    bool in_transaction;
    int64_t asked_ns; /* just before the request that gained or renewed the claim */
} skip_claim;

extern const sl_claim_ops sl_claim_skip_locked;

static skip_claim *skip_of(sl_claim *c)
{
    return (skip_claim *)c;
}

static int64_t skip_trusted(const sl_claim *base)
{
    const skip_claim *c = (const skip_claim *)base;
    return sl_claim_trusted_ns(&c->conf, c->asked_ns);
}

static sl_rc take_locked(skip_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    sl_val in[] = { sl_int(max), sl_int(c->conf.batch_bytes) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(c->db, "tx/begin") },
        { .stmt = sl_db_stmt(c->db, "skip_locked/take"),
          .in = in,
          .row = sl_claim_row,
          .ctx = b },
    };
    sl_rc rc = c->db->ops->run(c->db, calls, 2, err);
    c->in_transaction = rc == SL_OK && b->count > 0;
    if (rc == SL_OK && b->count == 0)
        rc = sl_db_run1(c->db, "tx/commit", NULL, NULL, NULL, NULL, err);
    return rc;
}

static sl_rc take_leased(skip_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    sl_val in[] = { sl_int(max), sl_int(c->conf.batch_bytes), sl_int(c->conf.lease_ns / 1000),
                    sl_text(sl_str_of(c->conf.worker)) };
    sl_rc rc = sl_db_run1(c->db, "skip_locked/lease", in, sl_claim_row, b, NULL, err);
    sl_batch_sort(b);
    return rc;
}

static sl_rc skip_take(sl_claim *base, sl_batch *b, int64_t max, sl_err *err)
{
    skip_claim *c = skip_of(base);
    c->asked_ns = sl_now_ns();
    return c->conf.hold == SL_HOLD_TRANSACTION ? take_locked(c, b, max, err)
                                               : take_leased(c, b, max, err);
}

static sl_rc renew(skip_claim *c, const sl_batch *b, sl_err *err)
{
    int64_t *ids = sl_alloc(2 * b->count * sizeof *ids);
    int64_t *epochs = ids + b->count;
    size_t n = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (b->msgs[i].consumed)
            continue; /* it is nobody else's any more */
        ids[n] = b->msgs[i].id;
        epochs[n++] = b->msgs[i].epoch;
    }
    int64_t asked_ns = sl_now_ns();
    sl_rc rc = sl_lease_renew(c->db, ids, epochs, n, c->conf.lease_ns, err);
    if (rc == SL_OK)
        c->asked_ns = asked_ns;
    free(ids);
    return rc;
}

static sl_rc skip_hold(sl_claim *base, const sl_batch *b, sl_err *err)
{
    skip_claim *c = skip_of(base);
    int64_t now_ns = sl_now_ns();
    if (c->conf.hold == SL_HOLD_LEASE && now_ns - c->asked_ns >= c->conf.lease_ns / 3)
        return renew(c, b, err);
    if (now_ns >= sl_claim_ends_ns(&c->conf, c->asked_ns))
        return sl_fail(err, SL_AGAIN,
                       "the sink took longer than a transaction may last\nhint: a "
                       "longer lease, a smaller batch, or hold: lease");
    return SL_OK;
}

static sl_rc skip_settle(sl_claim *base, sl_batch *b, size_t *lost, sl_err *err)
{
    skip_claim *c = skip_of(base);
    sl_settle_how how = {
        .in_transaction = c->in_transaction,
        .attempt_counted = c->conf.hold == SL_HOLD_LEASE,
        .keep = c->conf.keep,
        .retry_base_ns = c->conf.retry_base_ns,
        .retry_max_ns = c->conf.retry_max_ns,
    };
    c->in_transaction = false;
    return sl_settle_write(c->db, b, &how, lost, err);
}

/* A lease has counted it; what an open transaction writes is not durable before it ends. */
static sl_rc skip_count(sl_claim *base, sl_batch *b, bool *again, sl_err *err)
{
    skip_claim *c = skip_of(base);
    if (c->conf.hold == SL_HOLD_LEASE)
        return SL_OK;
    *again = true;
    return sl_ordered_count(c->db, b, err);
}

static sl_rc no_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)ctx;
    (void)cols;
    (void)err;
    return SL_OK;
}

/* With the transaction ends the claim on what is not consumed: that is for another turn. */
static void release_others(sl_batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        if (!b->msgs[i].consumed)
            sl_msg_settle(b, &b->msgs[i], SL_RELEASED, SL_NONE);
}

static sl_rc skip_consume(sl_claim *base, sl_batch *b, const sl_consume_stamp *stamp,
                          sl_err *err)
{
    skip_claim *c = skip_of(base);
    sl_group g;
    sl_group_consumed(&g, b);
    sl_val in[] = {
        sl_ints(g.ids, g.n),    sl_ints(g.epochs, g.n),   sl_text(sl_str_of(c->conf.worker)),
        sl_int(stamp->journal), sl_int(stamp->opened_by), sl_int(stamp->position),
        sl_ints(g.counts, g.n)
    };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(c->db, "tx/begin") },
        { .stmt = sl_db_stmt(c->db, "consumed/lock"), .in = in, .row = no_row },
        { .stmt = sl_db_stmt(c->db, "consumed/take"), .in = in },
        { .stmt = sl_db_stmt(c->db, "settle/sent"), .in = in },
    };
    size_t first = c->in_transaction ? 1 : 0;
    sl_rc rc = c->db->ops->run(c->db, calls + first, 4 - first, err);
    if (rc != SL_OK)
        return rc;
    if (calls[1].affected != (int64_t)g.n || calls[3].affected != (int64_t)g.n) {
        c->db->ops->rollback(c->db);
        return sl_fail(err, SL_AGAIN, "the claim was lost before anything was consumed");
    }
    rc = sl_db_run1(c->db, "tx/commit", NULL, NULL, NULL, NULL, err);
    if (rc == SL_OK && c->in_transaction)
        release_others(b);
    c->in_transaction = false;
    return rc;
}

/* Runs everything once on nothing. */
static sl_rc rehearse(skip_claim *c, sl_err *err)
{
    sl_batch none;
    sl_batch_init(&none);
    sl_rc rc = skip_take(&c->base, &none, 0, err);
    sl_batch_fini(&none);
    if (rc == SL_OK && c->conf.hold == SL_HOLD_LEASE)
        rc = sl_lease_renew(c->db, NULL, NULL, 0, c->conf.lease_ns, err);
    return rc == SL_OK ? sl_settle_rehearse(c->db, c->conf.keep, c->conf.consumes, err) : rc;
}

static void skip_close(sl_claim *base)
{
    skip_claim *c = skip_of(base);
    if (c->in_transaction)
        c->db->ops->rollback(c->db);
    free(c);
}

static sl_rc skip_open(sl_claim **out, sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    skip_claim *c = sl_alloc(sizeof *c);
    *c = (skip_claim){ .base = { &sl_claim_skip_locked }, .db = db, .conf = *conf };
    sl_rc rc = rehearse(c, err);
    if (rc == SL_OK)
        rc = sl_consume_begin(db, conf, err);
    if (rc == SL_OK)
        *out = &c->base;
    else
        skip_close(&c->base);
    return rc;
}

static sl_rc skip_peek(sl_claim *base, bool *any, sl_err *err)
{
    return sl_ordered_peek(skip_of(base)->db, "skip_locked/peek", 0, any, err);
}

const sl_claim_ops sl_claim_skip_locked = {
    .name = "skip-locked",
    .ordered = false,
    .open = skip_open,
    .take = skip_take,
    .hold = skip_hold,
    .trusted_ns = skip_trusted,
    .settle = skip_settle,
    .renew = sl_lease_renew,
    .peek = skip_peek,
    .count = skip_count,
    .consume = skip_consume,
    .close = skip_close,
};
