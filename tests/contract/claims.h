/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as the claim sees it: a connection, a claim on it, and a batch; and the node that owns
 * its lanes, where the strategy wants one. */
#ifndef TESTS_CONTRACT_CLAIMS_H
#define TESTS_CONTRACT_CLAIMS_H

#include "claim/claim.h"
#include "member/nodes.h"

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
                            .retry_max_ns = 60 * SL_SEC,
                            .rotated = testdb_rotated,
                            .workers = 1 };
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

/* One way or the other must make no difference: each second settle does not wait for its answer, if the claim can. */
static inline sl_rc worker_try_settle(worker *w)
{
    static unsigned settles;
    bool posted = false;
    sl_rc rc = SL_OK;
    const sl_claim_ops *ops = w->claim->ops;
    if (ops->post && settles++ % 2 && w->batch.count &&
        sl_batch_count_of(&w->batch, SL_SENT) == w->batch.count)
        rc = ops->post(w->claim, &w->batch, &posted, &w->err);
    if (rc != SL_OK)
        return rc;
    return posted ? ops->answered(w->claim, &w->lost, &w->err)
                  : ops->settle(w->claim, &w->batch, &w->lost, &w->err);
}

/* Every message without a verdict gets this one; then all is written. Returns what was lost. */
static inline size_t worker_settle(worker *w, sl_verdict rest, sl_str reason)
{
    sl_batch_settle_rest(&w->batch, rest, reason);
    if (worker_try_settle(w) != SL_OK)
        fail_msg("%s", w->err.text);
    return w->lost;
}

/* ---- A node and its lanes, without a keeper: nothing happens unless the test does it ---- */

enum { LANES_MAX = 1024 };

typedef struct lane_node {
    sl_db *db;
    int64_t session; /* 0: not joined */
    sl_lanes *lanes;
    size_t count; /* lanes of the table */
} lane_node;

static inline void lane_node_granted(void *ctx, size_t lane, int64_t epoch, int64_t floor)
{
    sl_lanes_grant(((lane_node *)ctx)->lanes, lane, epoch, floor);
}

/* Takes those of the lanes [first, end) that are free, and trusts in them for a long time. Returns
 * how many it has gained. */
static inline size_t lane_node_acquire(lane_node *n, size_t first, size_t end)
{
    int64_t wanted[LANES_MAX];
    sl_err err = { 0 };
    size_t had = sl_lanes_owned_count(n->lanes);
    size_t count = 0;
    for (size_t i = first; i < end; i++)
        if (!sl_lanes_owned(n->lanes, i))
            wanted[count++] = (int64_t)i;
    if (sl_lanes_acquire(n->db, wanted, count, n->session, lane_node_granted, n, &err) != SL_OK)
        fail_msg("%s", err.text);
    sl_lanes_trust(n->lanes, sl_now_ns() + 600 * SL_SEC);
    return sl_lanes_owned_count(n->lanes) - had;
}

/* Registers without any lane. */
static inline void lane_node_join(lane_node *n, const testdb *t, const char *name)
{
    static int64_t sessions = 1000;
    sl_err err = { 0 };
    sl_beat beat;
    char assign[] = "claim", strategy[] = "lanes", node[32];
    snprintf(node, sizeof node, "%s", name);
    *n = (lane_node){ .db = testdb_open(t), .session = ++sessions, .lanes = sl_lanes_new() };
    sl_node_row me = { .session = n->session,
                       .node = node,
                       .strategy = strategy,
                       .assign = assign,
                       .workers = 1 };
    sl_rc rc = sl_nodes_join(n->db, &me, 600 * SL_SEC, NULL, &err);
    if (rc == SL_OK)
        rc = sl_nodes_beat(n->db, &me, 600 * SL_SEC, &beat, &err);
    if (rc != SL_OK)
        fail_msg("%s", err.text);
    n->count = (size_t)beat.lanes;
    assert_true(n->count <= LANES_MAX);
    sl_lanes_void(n->lanes, n->count);
}

/* As if others had pruned it: it does not notice yet. */
static inline void lane_node_prune(const lane_node *n, testdb *t)
{
    char sql[96];
    snprintf(sql, sizeof sql, "DELETE FROM sluice_outbox_nodes WHERE session = %lld",
             (long long)n->session);
    testdb_exec(t, sql);
}

/* Its workers must be closed. */
static inline void lane_node_fini(lane_node *n)
{
    sl_err ignored;
    if (n->session)
        (void)!sl_nodes_leave(n->db, n->session, &ignored);
    sl_db_close(n->db);
    sl_lanes_free(n->lanes);
    *n = (lane_node){ .session = 0 };
}

/* Where the strategy wants lanes, those of the node, which joins and takes all if it has not yet. */
static inline void claims_give_lanes(sl_claim_conf *conf, const sl_claim_ops *strategy,
                                     lane_node *n, const testdb *t)
{
    if (!strategy->owns_lanes)
        return;
    if (!n->session) {
        lane_node_join(n, t, "n");
        lane_node_acquire(n, 0, n->count);
    }
    conf->lanes = n->lanes;
}

#endif
