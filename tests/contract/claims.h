/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as the claim sees it: a connection, a claim on it, and a batch. */
#ifndef TESTS_CONTRACT_CLAIMS_H
#define TESTS_CONTRACT_CLAIMS_H

#include "claim/claim.h"

#include "support/testdb.h"

typedef struct worker {
    sl_db *db;
    sl_claim *claim;
    sl_batch batch;
    size_t lost;
    sl_err err;
} worker;

static inline sl_claim_conf claims_conf(const char *name, sl_hold hold)
{
    return (sl_claim_conf){ .worker = name,
                            .batch_bytes = 1 << 20,
                            .lease_ns = 30 * SL_SEC,
                            .hold = hold,
                            .retry_base_ns = 10 * SL_SEC,
                            .retry_max_ns = 60 * SL_SEC };
}

/* wait_ns: how long to wait for a lock of another (SQLite). */
static inline sl_rc worker_try_open(worker *w, const testdb *t, const sl_claim_ops *strategy,
                                    const sl_claim_conf *conf, int64_t wait_ns)
{
    *w = (worker){ .lost = 0 };
    sl_batch_init(&w->batch);
    sl_dsn dsn = testdb_dsn(t);
    dsn.connect_ns = wait_ns;
    w->db = testdb_open_as(&dsn);
    return strategy->open(&w->claim, w->db, conf, &w->err);
}

static inline void worker_open(worker *w, const testdb *t, const sl_claim_ops *strategy,
                               const sl_claim_conf *conf)
{
    if (worker_try_open(w, t, strategy, conf, 20 * SL_SEC) != SL_OK)
        fail_msg("%s", w->err.text);
}

static inline void worker_close(worker *w)
{
    if (w->claim)
        w->claim->ops->close(w->claim);
    sl_db_close(w->db);
    sl_batch_fini(&w->batch);
    *w = (worker){ .lost = 0 };
}

static inline sl_rc worker_try_take(worker *w, int64_t max)
{
    sl_batch_reset(&w->batch);
    return w->claim->ops->take(w->claim, &w->batch, max, &w->err);
}

/* Returns how many. */
static inline size_t worker_take(worker *w, int64_t max)
{
    if (worker_try_take(w, max) != SL_OK)
        fail_msg("%s", w->err.text);
    return w->batch.count;
}

/* Every message without a verdict gets this one; then all is written. Returns what was lost. */
static inline size_t worker_settle(worker *w, sl_verdict rest, sl_str reason)
{
    sl_batch_settle_rest(&w->batch, rest, reason);
    if (w->claim->ops->settle(w->claim, &w->batch, &w->lost, &w->err) != SL_OK)
        fail_msg("%s", w->err.text);
    return w->lost;
}

#endif
