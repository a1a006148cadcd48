/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advisory: lock the key, deliver, delete, commit, in one transaction that stays open until the
 * verdict. A crash frees the keys at once, since the server lets go. The transaction is bounded by
 * `lease`, on both sides: the server ends one that idles longer. On SQLite the write transaction
 * itself is the lock: others wait while one delivers.
 *
 * At most once, what is consumed has to be committed before it is sent, and the keys must be nobody else's for
 * a moment meanwhile. Where the session can have locks it keeps them until the next transaction has them, all in one
 * round trip. Elsewhere each key gets a row, as with guard, which all look for, and no transaction is open while
 * those are sent.
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
    bool in_transaction; /* else the keys are ours as far as they have rows with our epoch */
    int64_t epoch;       /* of the turn */
    int64_t asked_ns;    /* before the transaction began, or the rows were written */
    int64_t alive_ns;    /* when the server is looked for again */
} advisory_claim;

extern const sl_claim_ops sl_claim_advisory;

static advisory_claim *advisory_of(sl_claim *c)
{
    return (advisory_claim *)c;
}

/* The open transaction is the fence. Without one, the rows are; where there are no rows either, what needs a claim
 * is lost. */
static sl_ordered_how *how_of(const advisory_claim *c, sl_fencing *f)
{
    const sl_str_list *claims = &c->keyed.claims;
    bool tx = c->in_transaction;
    f->in[0] = sl_texts(claims->v, claims->count);
    f->in[1] = sl_int(c->epoch);
    f->fence = (sl_call){ .stmt = sl_db_stmt(c->keyed.db, "guard/fence"), .in = f->in };
    f->how = (sl_ordered_how){
        .in_transaction = tx,
        .sent = sl_keyed_sent(&c->keyed, tx),
        .keep = !c->keyed.conf.keep ? NULL
                : tx                ? "ordered/keep"
                                    : "guard/keep",
        .fence = &f->fence,
        .fenced = (int64_t)claims->count,
        .retry_base_ns = c->keyed.conf.retry_base_ns,
        .retry_max_ns = c->keyed.conf.retry_max_ns,
    };
    return &f->how;
}

static sl_rc settle(advisory_claim *c, size_t *lost, sl_err *err)
{
    sl_fencing f;
    sl_ordered_how *how = how_of(c, &f);
    sl_call done = { .stmt = sl_db_stmt(c->keyed.db, "advisory/let_go"), .in = f.in };
    how->done = &done;
    how->dones = c->keyed.leases && !c->in_transaction ? 1 : 0;
    c->in_transaction = false;
    return sl_ordered_settle(c->keyed.db, &c->keyed.found, how, lost, err);
}

/* ---- Taking ---- */

static sl_rc epoch_row(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    ((advisory_claim *)ctx)->epoch = cols[0].i;
    return SL_OK;
}

/* Rows of keys whose time is over, and which are locked now: who wrote them must find them gone. */
static size_t take_over(const advisory_claim *c, sl_call calls[2], sl_val in[2][2])
{
    const sl_keyed *k = &c->keyed;
    const sl_str_list *lists[] = { &k->claims, &k->empty };
    size_t n = 0;
    for (size_t i = 0; k->leases && k->over && i < 2; i++) {
        in[i][0] = sl_texts(lists[i]->v, lists[i]->count);
        in[i][1] = sl_int(sl_keyed_turns(k));
        calls[n++] = (sl_call){ .stmt = sl_db_stmt(k->db, "guard/takeover"), .in = in[i] };
    }
    return n;
}

static sl_rc read_locked(advisory_claim *c, sl_batch *b, int64_t max, sl_err *err)
{
    sl_val in[3][3], over_in[2][2];
    sl_call calls[6] = {
        { .stmt = sl_db_stmt(c->keyed.db, "epoch/next"), .row = epoch_row, .ctx = c }
    };
    size_t n = 1 + take_over(c, calls + 1, over_in);
    n += sl_keyed_read(&c->keyed, b, max, calls + n, in);
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
    sl_rc rc = sl_keyed_expire(&c->keyed, err);
    if (rc != SL_OK)
        return rc;
    c->asked_ns = sl_now_ns();
    c->alive_ns = 0;
    rc = sl_keyed_lock(&c->keyed, max, &locked, err);
    if (rc != SL_OK || !locked)
        return rc;
    rc = read_locked(c, b, max, err);
    if (rc == SL_OK && b->count == 0) /* what only waits is put aside */
        rc = settle(c, &lost, err);
    return rc;
}

/* ---- Holding and settling ---- */

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

/* ---- At most once ---- */

/* Commits what was moved, without a moment in which another could have one of the keys: not those of the other
 * messages of the batch either. When this fails, the commit may have been made or not: what was consumed is listed when the
 * worker begins anew, on another connection, and that frees the locks of this session. */
static sl_rc commit_and_keep(advisory_claim *c, sl_err *err)
{
    sl_db *db = c->keyed.db;
    const sl_str_list *claims = &c->keyed.claims;
    sl_val in[] = { sl_texts(claims->v, claims->count), sl_int(c->epoch),
                    sl_int(c->keyed.conf.lease_ns / 1000),
                    sl_text(sl_str_of(c->keyed.conf.worker)) };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "advisory/keep"), .in = in },
                        { .stmt = sl_db_stmt(db, "tx/commit") },
                        { .stmt = sl_db_stmt(db, "tx/begin") },
                        { .stmt = sl_db_stmt(db, "keyed/lock"), .in = in },
                        { .stmt = sl_db_stmt(db, "advisory/let_go"), .in = in } };
    bool relock = db->ops->session_locks;
    int64_t n = (int64_t)claims->count;
    c->asked_ns = sl_now_ns();
    c->alive_ns = 0;
    c->keyed.turn = c->epoch;
    sl_rc rc = db->ops->run(db, calls, relock ? 5 : 2, err);
    if (rc != SL_OK)
        return rc;
    if (calls[0].affected == n &&
        (!relock || (calls[3].affected == n && calls[4].affected == n))) {
        c->in_transaction = relock;
        return SL_OK;
    }
    db->ops->rollback(db);
    return sl_fail(err, SL_AGAIN, "keys that were locked were not kept beyond the commit");
}

static sl_rc advisory_consume(sl_claim *base, sl_batch *b, const sl_consume_stamp *stamp,
                              sl_err *err)
{
    advisory_claim *c = advisory_of(base);
    sl_fencing f;
    sl_rc rc = sl_ordered_move(c->keyed.db, how_of(c, &f), b, c->keyed.conf.worker, stamp, err);
    c->in_transaction = false; /* it is over, or about to be */
    return rc == SL_OK ? commit_and_keep(c, err) : rc;
}

/* ---- Opening and closing ---- */

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

/* Runs on nothing what rows need. */
static sl_rc rehearse_rows(sl_db *db, sl_err *err)
{
    sl_str none;
    int64_t no_id;
    sl_val in[] = { sl_texts(&none, 0), sl_int(0) };
    sl_val no_turn = sl_int(INT64_MAX);
    sl_val sent_in[] = { sl_ints(&no_id, 0), sl_ints(&no_id, 0) };
    sl_call calls[] = {
        { .stmt = sl_db_stmt(db, "guard/takeover"), .in = in },
        { .stmt = sl_db_stmt(db, "guard/expire"), .in = &no_turn },
        { .stmt = sl_db_stmt(db, "guard/fence"), .in = in },
        { .stmt = sl_db_stmt(db, "guard/sent"), .in = sent_in },
    };
    return db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
}

/* And what keeps keys beyond a commit. */
static sl_rc rehearse_keeping(sl_db *db, sl_err *err)
{
    sl_str none;
    sl_val in[] = { sl_texts(&none, 0), sl_int(0), sl_int(0), sl_text(SL_STR("")) };
    sl_call calls[] = { { .stmt = sl_db_stmt(db, "advisory/keep"), .in = in },
                        { .stmt = sl_db_stmt(db, "advisory/let_go"), .in = in } };
    return db->ops->run(db, calls, sizeof calls / sizeof calls[0], err);
}

static sl_rc rehearse(const advisory_claim *c, sl_err *err)
{
    sl_db *db = c->keyed.db;
    bool rows = c->keyed.leases;
    bool consumes = c->keyed.conf.consumes;
    sl_rc rc = rows ? rehearse_rows(db, err) : SL_OK;
    if (rc == SL_OK && consumes)
        rc = rehearse_keeping(db, err);
    if (rc == SL_OK && c->keyed.conf.keep)
        rc = sl_ordered_rehearse_keep(db, rows ? "guard/keep" : "ordered/keep", consumes, err);
    return rc;
}

static sl_rc advisory_open(sl_claim **out, sl_db *db, const sl_claim_conf *conf, sl_err *err)
{
    advisory_claim *c = sl_alloc(sizeof *c);
    c->base.ops = &sl_claim_advisory;
    sl_rc rc = sl_keyed_open(&c->keyed, db, conf, !db->ops->session_locks, err);
    if (rc == SL_OK)
        rc = rehearse(c, err);
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
    .consume = advisory_consume,
    .close = advisory_close,
};
