/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strategies that promise order, with their own code and statements, in every interleaving of
 * two or three workers, producers and leases that end, with a bounded number of preemptions. No
 * schedule may show a key that is held twice, disorder, or a message that is lost, and whatever a
 * schedule leaves must be there for the next worker. That such schedules would be noticed is proved
 * by tests/sql/test_permuter.c.
 */
#include "member/nodes.h"
#include "sql/permuted.h"

static const sl_claim_ops *strategy;
static perm_session last; /* delivers what a schedule leaves */
static worker rest;
static sl_lanes *lanes[PERM_SESSIONS + 1];
static int rows;         /* messages that there are at first: 2, 3, ... of k0 */
static int64_t most;     /* messages in a turn */
static int turns;        /* of each worker */
static bool first_fails; /* the first worker sends nothing */

/* Claims are opened anew for each schedule: what they remember would make it another. */
static void reopen(worker *w, int who)
{
    p.idle = w->claim != NULL; /* all is prepared, and rehearsed */
    if (w->claim)
        w->claim->ops->close(w->claim);
    w->claim = NULL;
    sl_lanes_free(lanes[who]);
    lanes[who] = sl_lanes_new();
    sl_lanes_void(lanes[who], 1);
    sl_lanes_trust(lanes[who], INT64_MAX);
    sl_claim_conf conf = claims_conf("permuted", SL_HOLD_LEASE);
    conf.lanes = lanes[who];
    conf.workers = 1;
    if (strategy->open(&w->claim, w->db, &conf, &w->err) != SL_OK)
        fail_msg("%s", w->err.text);
    p.idle = false;
}

static void reset_real(perm *unused)
{
    char sql[640];
    (void)unused;
    snprintf(sql, sizeof sql,
             "DELETE FROM sluice_outbox; DELETE FROM sluice_outbox_keys; DELETE FROM "
             "sluice_outbox_claims; DELETE FROM sluice_outbox_nodes; UPDATE "
             "sluice_outbox_lanes SET owner = NULL; INSERT INTO sluice_outbox_nodes (session, "
             "node, strategy, assign, workers, born, lives_until) SELECT i, 'n' || i, 'lanes', "
             "'ring', 1, i, 'infinity' FROM generate_series(1, %d) i; INSERT INTO "
             "sluice_outbox (id, topic, entity_key, payload) SELECT i, 'race', 'k0', '' FROM "
             "generate_series(2, %d) i",
             p.count + 1, rows + 1);
    testdb_exec(&t, sql);
    watch_reset(&seen);
    total = rows;
    expiries = 0;
    for (int i = 0; i < p.count; i++)
        reopen(&workers[i], i);
}

/* ---- A turn ---- */

static void granted(void *ctx, size_t lane, int64_t epoch, int64_t floor)
{
    sl_lanes_grant(ctx, lane, epoch, floor);
}

static sl_rc own(worker *w, int who)
{
    const int64_t lane = 0;
    if (!strategy->owns_lanes)
        return SL_OK;
    return sl_lanes_acquire(w->db, &lane, 1, who + 1, granted, lanes[who], &w->err);
}

static sl_rc disown(worker *w, int who)
{
    const bool wish = false;
    int64_t lane;
    if (!strategy->owns_lanes || sl_lanes_owned_count(lanes[who]) == 0)
        return SL_OK;
    sl_lanes_wish(lanes[who], &wish);
    return sl_lanes_left(lanes[who], &lane)
               ? sl_lanes_release(w->db, &lane, 1, who + 1, &w->err)
               : SL_OK;
}

static void fail_all(sl_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        b->msgs[i].delay_ns = 0;
        sl_msg_settle(b, &b->msgs[i], i == 0 ? SL_RETRY : SL_RELEASED, SL_NONE);
    }
}

static sl_rc turn(perm_session *s)
{
    worker *w = &workers[s->number];
    sl_batch_reset(&w->batch);
    if (!strategy->owns_lanes) /* else what counts is when the node asked */
        s->before = ask;
    sl_rc rc = strategy->take(w->claim, &w->batch, most, &w->err);
    if (rc == SL_OK && w->batch.count > 0) {
        if (first_fails && s->number == 0)
            fail_all(&w->batch);
        sl_batch_settle_rest(&w->batch, hold_and_send(s) ? SL_SENT : SL_RELEASED, SL_NONE);
        rc = strategy->settle(w->claim, &w->batch, &w->lost, &w->err);
    }
    return rc;
}

static void work_real(perm_session *s)
{
    worker *w = &workers[s->number];
    s->before = ask;
    sl_rc rc = own(w, s->number);
    for (int i = 0; i < turns && rc == SL_OK; i++)
        rc = turn(s);
    if (rc == SL_OK)
        rc = disown(w, s->number);
    if (rc != SL_OK)
        failure = w->err;
}

/* ---- What others do meanwhile ---- */

static void run_other(perm_session *s, int slot, const char *sql, int ncols, int64_t *got)
{
    char name[16];
    snprintf(name, sizeof name, "%.15s", sql);
    bad_stmt stmt = { slot, name, sql, ncols, { SL_T_INT8 } };
    sl_rc rc = bad_run(&workers[s->number], &stmt, NULL, 0, bad_note_int, got, NULL);
    if (rc != SL_OK)
        failure = workers[s->number].err;
}

/* Guard: every lease that is there ends. */
static void key_leases_end(perm_session *s)
{
    run_other(s, 4, "UPDATE sluice_outbox_claims c SET ends_at = clock_timestamp()", 0, NULL);
    expiries++;
    watch_expired(&seen, UINT64_MAX);
}

/* Lanes: the first node is forgotten. It knows that its own lease is over. */
static void first_node_ends(perm_session *s)
{
    run_other(s, 4, "DELETE FROM sluice_outbox_nodes n WHERE n.session = 1", 0, NULL);
    expiries++;
    sl_lanes_trust(lanes[0], 0);
    watch_expired(&seen, 1);
    for (int i = 1; i < p.count; i++)
        asked[i] = expiries; /* the others live */
}

static void commit_late(perm_session *s)
{
    worker *w = &workers[s->number];
    seen.late[1] = rows + 1;
    total = rows + 1;
    if (bad_tx(w, "tx/begin") != SL_OK)
        failure = w->err;
    run_other(s, 4,
              "INSERT INTO sluice_outbox (id, topic, entity_key, payload) VALUES (1, 'race', "
              "'k0', '')",
              0, NULL);
    if (bad_tx(w, "tx/commit") != SL_OK)
        failure = w->err;
}

#define INSERT(key)                                                                            \
    "INSERT INTO sluice_outbox (topic, entity_key, payload) VALUES ('race', '" key "', '') "   \
    "RETURNING id"

/* In order, but slowly. */
static void produce_two(perm_session *s)
{
    worker *w = &workers[s->number];
    int64_t id = 0;
    total = 3;
    if (bad_tx(w, "tx/begin") != SL_OK)
        failure = w->err;
    run_other(s, 4, INSERT("k0"), 1, &id);
    if (bad_tx(w, "tx/commit") != SL_OK)
        failure = w->err;
    run_other(s, 5, INSERT("k0"), 1, &id);
}

static void produce_one(perm_session *s)
{
    int64_t id = 0;
    run_other(s, 4, INSERT("k1"), 1, &id);
}

/* ---- The verdict ---- */

/* A worker that comes later finds all that was left, in order. */
static void deliver_the_rest(void)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    if (testdb_count(&t) == 0)
        return;
    reopen(&rest, p.count);
    if (own(&rest, p.count) != SL_OK)
        fail_msg("%s", rest.err.text);
    while (testdb_count(&t) > 0) {
        worker_take(&rest, 100);
        for (size_t i = 0; i < rest.batch.count; i++)
            watch_sent(&seen, p.count, &rest.batch.msgs[i]);
        if (worker_settle(&rest, SL_SENT, SL_NONE) || sl_now_ns() > until_ns)
            fail_msg("%s: the rest is out of reach", sl_buf_text(&p.trace));
    }
}

static bool wrong_real(perm *unused)
{
    if (wrong(unused))
        return true;
    deliver_the_rest();
    return wrong(unused) || seen.distinct != total || (seen.doubled && !expiries);
}

static int setup_real(int sessions)
{
    open_all(sessions);
    last = (perm_session){ .base = { &perm_ops }, .p = &p, .real = testdb_open(&t) };
    rest = (worker){ .db = &last.base };
    sl_batch_init(&rest.batch);
    rows = 3;
    most = 2;
    turns = 1;
    first_fails = false;
    return 0;
}

static int setup_real_2(void **state)
{
    (void)state;
    return setup_real(2);
}

static int setup_real_3(void **state)
{
    (void)state;
    return setup_real(3);
}

static int close_real(void **state)
{
    for (int i = 0; i < p.count; i++)
        if (workers[i].claim)
            workers[i].claim->ops->close(workers[i].claim);
    worker_close(&rest);
    sl_db_close(last.real);
    for (int i = 0; i <= p.count; i++) {
        sl_lanes_free(lanes[i]);
        lanes[i] = NULL;
    }
    return close_all(state);
}

static void run_real(const char *what, perm_case c)
{
    char name[96];
    snprintf(name, sizeof name, "%s, %s", strategy->name, what);
    c.name = name;
    c.reset = reset_real;
    c.violated = wrong_real;
    perm_all(&p, &c);
}

static void two_workers_and_a_key(void **state)
{
    (void)state;
    run_real("two workers",
             (perm_case){ .bodies = { work_real, work_real }, .preemptions = 4 });
}

static void two_workers_of_which_one_fails(void **state)
{
    (void)state;
    first_fails = true;
    run_real("two workers, one fails",
             (perm_case){ .bodies = { work_real, work_real }, .preemptions = 2 });
}

static void three_workers_and_a_key(void **state)
{
    (void)state;
    run_real("three workers",
             (perm_case){ .bodies = { work_real, work_real, work_real }, .preemptions = 2 });
}

/* More messages than a worker looks at in one go. */
static void two_workers_and_a_long_key(void **state)
{
    (void)state;
    rows = 70;
    most = 1;
    run_real("two workers and a long key",
             (perm_case){ .bodies = { work_real, work_real }, .preemptions = 2 });
}

static void two_workers_and_a_late_commit(void **state)
{
    (void)state;
    run_real("two workers and a late commit",
             (perm_case){ .bodies = { work_real, work_real, commit_late }, .preemptions = 2 });
}

static void two_producers_and_a_worker(void **state)
{
    (void)state;
    rows = 0;
    turns = 2;
    run_real(
        "two producers and a worker",
        (perm_case){ .bodies = { produce_two, produce_one, work_real }, .preemptions = 2 });
}

static void two_workers_and_leases_that_end(void **state)
{
    (void)state;
    run_real("two workers and a lease that ends",
             (perm_case){ .bodies = { work_real, work_real,
                                      strategy->owns_lanes ? first_node_ends : key_leases_end },
                          .preemptions = 2 });
}

static int run_strategies(void)
{
#define REAL(fn, n) cmocka_unit_test_setup_teardown(fn, setup_real_##n, close_real)
    const struct CMUnitTest tests[] = {
        REAL(two_workers_and_a_key, 2),           REAL(two_workers_of_which_one_fails, 2),
        REAL(three_workers_and_a_key, 3),         REAL(two_workers_and_a_long_key, 2),
        REAL(two_workers_and_a_late_commit, 3),   REAL(two_producers_and_a_worker, 3),
        REAL(two_workers_and_leases_that_end, 3), /* the last: only where there are leases */
    };
    int failed = 0;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++) {
        strategy = *c;
        size_t n = COUNT(tests) - strategy->in_transaction;
        if (strategy->ordered)
            failed += _cmocka_run_group_tests(strategy->name, tests, n, NULL, NULL);
    }
    return failed;
}

int main(void)
{
    if (!testdb_has("postgres")) {
        print_message("needs PostgreSQL, by SL_TEST_PG\n");
        return TESTDB_SKIPPED;
    }
    watch_init(&seen);
    int failed = run_strategies();
    watch_fini(&seen);
    return failed;
}
