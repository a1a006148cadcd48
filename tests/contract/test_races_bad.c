/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Would the races notice? Claims that are known to be wrong run on them, with enough work for
 * what is rare, and each must be caught; what depends on time or on a pause is caught by a
 * schedule that is always the same. Claims that are known to be right then run for longer than
 * any of the wrong ones did, and must show nothing.
 */
#include "contract/bad_claims.h"
#include "contract/races.h"

static testdb t;
static watch seen;
static int most_claims; /* that it took to catch one */

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, "postgres", NULL);
    testdb_exec(&t, BAD_SCHEMA ";" BAD_RESET);
    watch_reset(&seen);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    testdb_drop(&t);
    return 0;
}

/* ---- On the races ---- */

static sl_rc bad_open(racer *r)
{
    sl_batch_init(&r->w.batch);
    r->w.db = testdb_open(r->race->t);
    return SL_OK;
}

static sl_rc bad_race_take(racer *r)
{
    const bad_claim *c = r->race->how->ctx;
    sl_batch_reset(&r->w.batch);
    sl_rc rc = c->take(c, &r->w, r->extra);
    r->took = r->w.batch.count;
    return rc;
}

static sl_rc bad_race_settle(racer *r)
{
    const bad_claim *c = r->race->how->ctx;
    return c->settle(c, &r->w);
}

static void bad_close(racer *r)
{
    worker_close(&r->w);
}

static race_sum run(const bad_claim *c, const race_plan *plan)
{
    race_how how = { .name = c->name,
                     .may_fail = true,
                     .open = bad_open,
                     .take = bad_race_take,
                     .settle = bad_race_settle,
                     .close = bad_close,
                     .ctx = c };
    testdb_exec(&t, BAD_RESET);
    return race_run(&t, &seen, &how, plan);
}

enum { MUCH = 30000 }; /* messages: more than any of them should need */

#define PLAN(many, wait, ...)                                                                  \
    {                                                                                          \
        .keys = many, .backlog = wait, .workers = 10, .messages = MUCH, .send_us = 400,        \
        __VA_ARGS__                                                                            \
    }

typedef struct bad_race {
    const char *test;
    const bad_claim *claim;
    const char *schema; /* NULL, or what else is needed */
    bool exclusive;     /* out of order, but never concurrent */
    race_plan plan;
} bad_race;

static const bad_race bad_races[] = {
    { "skip_locked_alone_is_caught", &bad_skip, NULL, false,
      PLAN(8, 32, .want_concurrent = true, .want_disorder = true) },
    { "a_guard_in_the_claim_is_caught", &bad_guard, NULL, false,
      PLAN(8, 32, .want_concurrent = true) },
    { "a_guard_in_the_claim_of_many_keys_is_caught", &bad_guard, NULL, false,
      PLAN(500, 100, .want_concurrent = true) },
    { "lock_and_guard_in_one_statement_is_caught", &bad_lock_and_guard, NULL, false,
      PLAN(8, 32, .want_concurrent = true, .want_disorder = true) },
    { "a_lock_released_before_the_send_is_caught", &bad_lock_then_send, NULL, false,
      PLAN(8, 32, .want_concurrent = true) },
    { "a_unique_index_alone_is_caught", &bad_unique, BAD_UNIQUE, true,
      PLAN(8, 32, .want_disorder = true) },
    { "head_only_with_late_commits_is_caught", &bad_head, NULL, false,
      PLAN(8, 16, .late = true, .want_concurrent = true) },
    { "a_lease_on_the_clients_clock_is_caught", &bad_client_clock, NULL, false,
      PLAN(8, 32, .extra_first = 60000000, .want_concurrent = true) },
};

static void is_caught(void **state)
{
    const bad_race *w = *state;
    if (w->schema)
        testdb_exec(&t, w->schema);
    race_sum sum = run(w->claim, &w->plan);
    if (!race_found(&w->plan, sum.concurrent, sum.disorder))
        fail_msg("%s: went unnoticed in %d claims", w->claim->name, sum.claims);
    print_message("caught after %d claims\n", sum.claims);
    if (w->exclusive)
        assert_int_equal(sum.concurrent, 0);
    if (sum.claims > most_claims)
        most_claims = sum.claims;
}

/* ---- Known to be right ---- */

static void shows_nothing(const bad_claim *c, const race_plan *like, int64_t extra)
{
    race_plan plan = *like;
    plan.messages = most_claims > 3000 ? most_claims : 3000;
    plan.extra = extra;
    race_sum sum = run(c, &plan);
    assert_true(sum.claims >= most_claims);
    assert_true(sum.claims >= 3000);
    assert_true(sum.busy >= plan.workers / 2);
    assert_int_equal(sum.concurrent, 0);
    assert_int_equal(sum.disorder, 0);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.doubled, 0);
    assert_int_equal(sum.left, 0);
}

static const race_plan in_order_few = PLAN(8, 32, .late = false);
static const race_plan in_order_many = PLAN(500, 100, .late = false);
static const race_plan late_few = PLAN(8, 16, .late = true);

static void lock_then_guard_and_head_shows_nothing(void **state)
{
    (void)state;
    shows_nothing(&good_lock, &in_order_few, 0);
    shows_nothing(&good_lock, &in_order_many, 0);
    shows_nothing(&good_lock, &late_few, 0);
}

static void a_lease_for_each_key_shows_nothing(void **state)
{
    (void)state;
    shows_nothing(&good_lease, &in_order_few, 60000000);
    shows_nothing(&good_lease, &in_order_many, 60000000);
    shows_nothing(&good_lease, &late_few, 60000000);
}

/* It fails on late commits only, so it is those that are caught there. */
static void head_only_in_order_shows_nothing(void **state)
{
    (void)state;
    shows_nothing(&bad_head, &in_order_few, 0);
}

/* ---- By hand: one step after the other ---- */

static worker hands[3];

static int setup_hands(void **state)
{
    setup(state);
    testdb_exec(&t,
                "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'race', 'k0', "
                "convert_to('', 'UTF8') FROM generate_series(1, 3)");
    for (size_t i = 0; i < COUNT(hands); i++) {
        hands[i] = (worker){ .db = testdb_open(&t) };
        sl_batch_init(&hands[i].batch);
    }
    return 0;
}

static int teardown_hands(void **state)
{
    for (size_t i = 0; i < COUNT(hands); i++)
        worker_close(&hands[i]);
    return teardown(state);
}

/* Returns the id, 0: none. */
static int64_t take_by(int who, const bad_claim *c, int64_t extra)
{
    worker *w = &hands[who];
    sl_batch_reset(&w->batch);
    if (c->take(c, w, extra) != SL_OK)
        fail_msg("%s", w->err.text);
    watch_taken(&seen, who, &w->batch);
    if (w->batch.count)
        watch_sent(&seen, who, &w->batch.msgs[0]);
    return w->batch.count ? w->batch.msgs[0].id : 0;
}

static void settle_by(int who, const bad_claim *c)
{
    watch_given_up(&seen, who, &hands[who].batch);
    if (c->settle(c, &hands[who]) != SL_OK)
        fail_msg("%s", hands[who].err.text);
}

/* The first is paused until its lease is over, the second takes over, the first wakes up and
 * settles, and a third looks for work. Returns what it finds. */
static int64_t after_a_pause(const bad_claim *c)
{
    const int64_t lease_us = 60000000;
    assert_int_equal(take_by(0, c, lease_us), 1);
    testdb_exec(&t, "UPDATE sluice_outbox_leases SET ends_at = clock_timestamp()");
    watch_expired(&seen, UINT64_MAX);
    assert_int_equal(take_by(1, c, lease_us), 1);
    assert_int_equal(seen.concurrent, 0);
    settle_by(0, c);
    return take_by(2, c, lease_us);
}

static void a_settle_without_an_epoch_is_caught(void **state)
{
    (void)state;
    assert_int_equal(after_a_pause(&bad_no_epoch), 2);
    assert_int_equal(hands[0].lost, 0);
    assert_int_equal(seen.concurrent, 1);
    settle_by(1, &bad_no_epoch);
    assert_int_equal(hands[1].lost, 1); /* deleted under its hands */
}

static void a_settle_with_an_epoch_shows_nothing(void **state)
{
    (void)state;
    assert_int_equal(after_a_pause(&good_lease), 0);
    assert_int_equal(hands[0].lost, 1);
    assert_int_equal(seen.concurrent, 0);
    settle_by(1, &good_lease);
    assert_int_equal(hands[1].lost, 0);
    assert_int_equal(take_by(2, &good_lease, 60000000), 2);
    assert_int_equal(seen.concurrent, 0);
    assert_int_equal(seen.disorder, 0);
}

/* A minute ahead, with a lease of half a minute. */
static void a_clock_that_is_ahead_is_caught(void **state)
{
    (void)state;
    assert_int_equal(take_by(0, &bad_client_clock, 0), 1);
    assert_int_equal(take_by(1, &bad_client_clock, 0), 0);
    assert_int_equal(seen.concurrent, 0);
    assert_int_equal(take_by(1, &bad_client_clock, 60000000), 1);
    assert_int_equal(seen.concurrent, 1);
}

/* ---- A lease counted from its answer ---- */

/* The first asks, and its answer is held up on the way until the second could take over. Does
 * the first still believe in its lease? `from_answer`: counted from then. */
static bool trusts_a_late_answer(bool from_answer)
{
    const int64_t lease_us = 50000;
    int64_t asked_ns = sl_now_ns();
    int64_t give_up_ns = asked_ns + 20 * SL_SEC;
    sl_batch_reset(&hands[0].batch);
    if (good_lease.take(&good_lease, &hands[0], lease_us) != SL_OK)
        fail_msg("%s", hands[0].err.text);
    assert_int_equal(hands[0].batch.msgs[0].id, 1); /* so the server says; we do not know yet */
    while (take_by(1, &good_lease, 60000000) == 0)
        assert_true(sl_now_ns() < give_up_ns);
    int64_t answered_ns = sl_now_ns();
    int64_t counted_ns = from_answer ? answered_ns : asked_ns;
    if (answered_ns >= counted_ns + lease_us * 1000)
        return false;
    watch_taken(&seen, 0, &hands[0].batch);
    return true;
}

static void a_lease_counted_from_the_answer_is_caught(void **state)
{
    (void)state;
    assert_true(trusts_a_late_answer(true));
    assert_int_equal(seen.concurrent, 1);
}

static void a_lease_counted_from_the_request_shows_nothing(void **state)
{
    (void)state;
    assert_false(trusts_a_late_answer(false));
    assert_int_equal(seen.concurrent, 0);
}

/* ---- Lanes ---- */

#define JOIN                                                                                   \
    "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, workers, born, "        \
    "lives_until) VALUES ($1, 'n', 'lanes', 'ring', 1, $1, 'infinity')"
#define FREE "(l.owner IS NULL OR l.owner NOT IN (SELECT n.session FROM sluice_outbox_nodes n))"
#define TAKE_OVER                                                                              \
    "UPDATE sluice_outbox_lanes l SET owner = $1, epoch = l.epoch + 1 WHERE l.lane = 0 "       \
    "AND " FREE
#define LOCK "SELECT l.owner FROM sluice_outbox_lanes l WHERE l.lane = 0 FOR UPDATE"

typedef struct waiter {
    bool locks_first;
    pthread_t thread;
    int64_t got;
    sl_rc rc;
} waiter;

static sl_rc lane_step(worker *w, int slot, const char *sql, int64_t session, int64_t *got)
{
    bad_stmt s = { slot, "lane", sql, 0, { SL_T_INT8 } };
    sl_val in[] = { sl_int(session) };
    return bad_run(w, &s, in, strstr(sql, "$1") != NULL, NULL, NULL, got);
}

/* Takes lane 0 over as node 2, whose owner is dead as far as it knows. */
static void *take_over(void *arg)
{
    waiter *a = arg;
    worker *w = &hands[1];
    bad_stmt lock = { 3, "lock", LOCK, 1, { SL_T_INT8 } };
    a->rc = bad_tx(w, "tx/begin");
    if (a->rc == SL_OK && a->locks_first)
        a->rc = bad_run(w, &lock, NULL, 0, NULL, NULL, NULL);
    if (a->rc == SL_OK)
        a->rc = lane_step(w, 1, TAKE_OVER, 2, &a->got);
    if (a->rc == SL_OK)
        a->rc = bad_tx(w, "tx/commit");
    return NULL;
}

/* Node 1 registers and takes over a lane, while node 2 wants it too. Returns whether node 2 robs
 * it. */
static bool robs(bool locks_first)
{
    waiter a = { .locks_first = locks_first };
    int64_t got = 0;
    testdb_exec(&t,
                "UPDATE sluice_outbox_lanes SET owner = 99; INSERT INTO sluice_outbox_nodes "
                "(session, node, strategy, assign, workers, born, lives_until) VALUES (2, "
                "'n', 'lanes', 'ring', 1, 2, 'infinity')");
    if (bad_tx(&hands[0], "tx/begin") != SL_OK ||
        lane_step(&hands[0], 0, JOIN, 1, NULL) != SL_OK ||
        lane_step(&hands[0], 1, TAKE_OVER, 1, &got) != SL_OK)
        fail_msg("%s", hands[0].err.text);
    assert_int_equal(got, 1);
    assert_int_equal(pthread_create(&a.thread, NULL, take_over, &a), 0);
    assert_true(testdb_waits_for_lock(&t)); /* the other one, on the lane */
    if (bad_tx(&hands[0], "tx/commit") != SL_OK)
        fail_msg("%s", hands[0].err.text);
    pthread_join(a.thread, NULL);
    if (a.rc != SL_OK)
        fail_msg("%s", hands[1].err.text);
    int64_t owner = testdb_int(&t, "SELECT owner FROM sluice_outbox_lanes WHERE lane = 0");
    assert_int_equal(owner, a.got ? 2 : 1);
    return a.got == 1;
}

static void a_takeover_in_one_statement_is_caught(void **state)
{
    (void)state;
    assert_true(robs(false));
}

static void a_takeover_after_the_lock_shows_nothing(void **state)
{
    (void)state;
    assert_false(robs(true));
}

/* ---- All ---- */

static int run_races(void)
{
    struct CMUnitTest tests[COUNT(bad_races) + 3];
    size_t n = 0;
    for (; n < COUNT(bad_races); n++)
        tests[n] = (struct CMUnitTest){ .name = bad_races[n].test,
                                        .test_func = is_caught,
                                        .setup_func = setup,
                                        .teardown_func = teardown,
                                        .initial_state = (void *)(uintptr_t)&bad_races[n] };
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    tests[n++] = (struct CMUnitTest)TEST(lock_then_guard_and_head_shows_nothing);
    tests[n++] = (struct CMUnitTest)TEST(a_lease_for_each_key_shows_nothing);
    tests[n++] = (struct CMUnitTest)TEST(head_only_in_order_shows_nothing);
    return _cmocka_run_group_tests("races", tests, n, NULL, NULL);
}

static int run_hands(void)
{
#define BY_HAND(fn) cmocka_unit_test_setup_teardown(fn, setup_hands, teardown_hands)
    const struct CMUnitTest tests[] = {
        BY_HAND(a_settle_without_an_epoch_is_caught),
        BY_HAND(a_settle_with_an_epoch_shows_nothing),
        BY_HAND(a_clock_that_is_ahead_is_caught),
        BY_HAND(a_lease_counted_from_the_answer_is_caught),
        BY_HAND(a_lease_counted_from_the_request_shows_nothing),
        BY_HAND(a_takeover_in_one_statement_is_caught),
        BY_HAND(a_takeover_after_the_lock_shows_nothing),
    };
    return cmocka_run_group_tests_name("by hand", tests, NULL, NULL);
}

int main(void)
{
    if (!testdb_has("postgres")) {
        print_message("needs PostgreSQL, by SL_TEST_PG\n");
        return TESTDB_SKIPPED;
    }
    watch_init(&seen);
    int wrong = run_hands() + run_races();
    watch_fini(&seen);
    return wrong;
}
