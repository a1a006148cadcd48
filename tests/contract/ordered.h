/* SPDX-License-Identifier: Apache-2.0 */
/* Two workers on one table, for the tests of what the ordered strategies promise: `strategy` on
 * `dialect` is under test. */
#ifndef TESTS_CONTRACT_ORDERED_H
#define TESTS_CONTRACT_ORDERED_H

#include "contract/claims.h"

static const char *dialect;
static const sl_claim_ops *strategy;
static testdb t;
static lane_node node;
static worker a, b;

static inline int setup(void **state)
{
    (void)state;
    a = b = (worker){ .lost = 0 };
    testdb_init(&t, dialect, NULL);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    worker_close(&a);
    worker_close(&b);
    lane_node_fini(&node);
    testdb_drop(&t);
    return 0;
}

static inline void open_with(worker *w, int64_t batch_bytes, int64_t workers)
{
    sl_claim_conf conf = claims_conf(w == &a ? "n/1" : "n/2", SL_HOLD_LEASE);
    conf.batch_bytes = batch_bytes;
    conf.workers = workers;
    claims_give_lanes(&conf, strategy, &node, &t);
    worker_open(w, &t, strategy, &conf);
}

static inline void open_worker(worker *w)
{
    open_with(w, 1 << 20, 1);
}

/* So many that no lane's share is too small: all that there is comes at once. */
enum { ALL = 10000 };

static inline bool lanes(void)
{
    return strategy->owns_lanes;
}

/* The ids of a batch: "1 3 5". */
static inline void expect_taken(const worker *w, const char *ids)
{
    char got[512] = "";
    for (size_t i = 0, n = 0; i < w->batch.count && n < sizeof got - 24; i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%lld", i ? " " : "",
                              (long long)w->batch.msgs[i].id);
    assert_string_equal(got, ids);
}

/* Takes until there is something; what waits is looked for some times a second. */
static inline size_t take_some(worker *w, int64_t max)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (worker_take(w, max) == 0)
        if (sl_now_ns() > until_ns)
            fail_msg("nothing comes");
        else
            usleep(2000);
    return w->batch.count;
}

/* Nothing comes, also not a little later: the claim looks for what waits each 100 ms. However slow the machine is, it
 * takes often enough, and also when that time is over: then what waits has been looked at and put where it belongs. */
static inline void expect_nothing(worker *w)
{
    int64_t until_ns = sl_now_ns() + 250 * SL_MS;
    int after = 0;
    for (int takes = 0; takes < 10 || after < 4; takes++) {
        after += sl_now_ns() >= until_ns;
        assert_int_equal(worker_take(w, 500), 0);
        usleep(5000);
    }
}

/* Sends all there is, and notes the ids in the order of sending. */
static inline size_t send_all(worker *w, int64_t max, int64_t *ids, size_t room,
                              size_t expected)
{
    size_t n = 0;
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (n < expected && sl_now_ns() < until_ns) {
        worker_take(w, max);
        for (size_t i = 0; i < w->batch.count && n < room; i++)
            ids[n++] = w->batch.msgs[i].id;
        if (w->batch.count)
            assert_int_equal(worker_settle(w, SL_SENT, SL_NONE), 0);
        else
            usleep(2000);
    }
    return n;
}

static inline void expect_sent(worker *w, int64_t max, int64_t first, int64_t last)
{
    size_t count = (size_t)(last - first + 1);
    int64_t *ids = sl_alloc(count * sizeof *ids);
    assert_int_equal(send_all(w, max, ids, count, count), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], first + (int64_t)i);
    free(ids);
}

/* Verdicts, a letter for each message of the batch: sent, retry, unknown, dead, released. */
static inline size_t settle_as(worker *w, const char *verdicts, int64_t delay_ns)
{
    assert_int_equal(strlen(verdicts), w->batch.count);
    for (size_t i = 0; i < w->batch.count; i++) {
        sl_msg *m = &w->batch.msgs[i];
        char c = verdicts[i];
        m->delay_ns = delay_ns;
        sl_msg_settle(&w->batch, m,
                      c == 's'   ? SL_SENT
                      : c == 'r' ? SL_RETRY
                      : c == 'u' ? SL_UNKNOWN
                      : c == 'd' ? SL_DEAD
                                 : SL_RELEASED,
                      SL_STR("why"));
    }
    return worker_settle(w, SL_SENT, SL_NONE);
}

/* As if the time of all that waits had come. */
static inline void all_due(void)
{
    testdb_exec(&t, "UPDATE sluice_outbox SET available_at = '2000-01-01 00:00:00.000' WHERE "
                    "held");
    testdb_exec(&t, "UPDATE sluice_outbox_keys SET due_at = '2000-01-01 00:00:00.000'");
}

#define HELD "SELECT count(*) FROM sluice_outbox WHERE held"
#define BLOCKED "SELECT count(*) FROM sluice_outbox_keys"

static inline int64_t held(void)
{
    return testdb_int(&t, HELD);
}

/* Nothing may go, and until that is known so many messages are put aside. */
static inline void expect_held(worker *w, int64_t count)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (held() < count && sl_now_ns() < until_ns)
        assert_int_equal(worker_take(w, 500), 0);
    assert_int_equal(held(), count);
}

static inline int64_t blocked(void)
{
    return testdb_int(&t, BLOCKED);
}

/* The group for `strategy`, on a table of one layout. */
static inline int ordered_by(int (*run_group)(const char *name), bool rotated)
{
    char title[80];
    testdb_rotated = rotated;
    snprintf(title, sizeof title, "%s on %s%s", strategy->name, dialect,
             rotated ? ", rotated" : "");
    print_message("%s\n", title);
    int failed = run_group(title);
    testdb_rotated = false;
    return failed;
}

/* Runs the group for each ordered strategy on each database, and for each layout that it can share. */
static inline int ordered_on(const char *name, int (*run_group)(const char *name))
{
    int failed = 0;
    dialect = name;
    for (const sl_claim_ops *const *c = sl_claim_all; *c; c++) {
        strategy = *c;
        if (strategy->ordered)
            failed += ordered_by(run_group, false);
        if (strategy->owns_lanes && !strcmp(dialect, "postgres"))
            failed += ordered_by(run_group, true);
    }
    return failed;
}

#endif
