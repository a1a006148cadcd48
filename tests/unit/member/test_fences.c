/* SPDX-License-Identifier: Apache-2.0 */
#include "member/fences.h"

#include "member/nodes.h"
#include "unit/member/registry.h"

static sl_fence_jobs jobs;

static int teardown(void **state)
{
    (void)state;
    sl_fence_jobs_fini(&jobs);
    drop_registry();
    return 0;
}

/* A node that sends to so many places. */
static void join(int64_t session, size_t places)
{
    static const int64_t ways[] = { 0, 2 };
    static const sl_str texts[] = { { "a:9092", 6 }, { "b:9092", 6 } };
    sl_node_row me = { .session = session,
                       .node = "n",
                       .strategy = "lanes",
                       .assign = "ring",
                       .workers = 3,
                       .places = { ways, texts, places } };
    must(sl_nodes_join(db, &me, 600 * SL_SEC, NULL, &err));
}

static void die(int64_t session)
{
    must(sl_nodes_leave(db, session, &err));
}

static bool any(void)
{
    bool found;
    must(sl_fences_any(db, &found, &err));
    return found;
}

static size_t take(int64_t busy_ns)
{
    must(sl_fences_take(db, busy_ns, &jobs, &err));
    return jobs.count;
}

static int64_t done(size_t i, const int64_t *ids, size_t n, bool keep)
{
    int64_t gone;
    must(sl_fences_done(db, &jobs.v[i], ids, n, keep, &gone, &err));
    return gone;
}

static void note(void *ctx, size_t lane, int64_t epoch, int64_t floor)
{
    (void)floor;
    (void)lane, (void)epoch;
    ++*(size_t *)ctx;
}

static size_t acquire(int64_t session, bool fenced)
{
    size_t n = 0;
    static const int64_t lanes[] = { 0, 1, 2, 3 };
    must((fenced ? sl_lanes_acquire_fenced : sl_lanes_acquire)(db, lanes, 4, session, note, &n,
                                                               &err));
    return n;
}

/* ---- Who is gone ---- */

static void who_lives_is_left_alone(void **state)
{
    (void)state;
    join(1, 2);
    assert_false(any());
    assert_int_equal(take(SL_SEC), 0);
}

static void who_is_gone_is_somebody_s_work(void **state)
{
    (void)state;
    join(1, 2);
    join(2, 0);
    die(1);
    die(2);
    assert_true(any());
    assert_int_equal(take(600 * SL_SEC), 2);
    for (size_t i = 0; i < 2; i++) {
        const sl_fence_job *j = &jobs.v[i];
        assert_int_equal(j->session, 1);
        assert_string_equal(j->node, "n");
        assert_int_equal(j->workers, 3);
        assert_string_equal(j->place, j->way == 0 ? "a:9092" : "b:9092");
    }
    assert_false(any()); /* we are at it */
    assert_int_equal(take(SL_SEC), 0);
}

static void after_a_while_it_is_anybody_s(void **state)
{
    (void)state;
    join(1, 1);
    die(1);
    assert_int_equal(take(0), 1);
    assert_true(any());
    assert_int_equal(take(600 * SL_SEC), 1);
}

static void one_that_leaves_in_order_leaves_nothing(void **state)
{
    (void)state;
    join(1, 2);
    must(sl_fences_forget(db, 1, &err));
    die(1);
    assert_false(any());
}

static void the_database_knows_who_lives(void **state)
{
    (void)state;
    bool lives;
    join(1, 1);
    must(sl_fences_lives(db, 1, &lives, &err));
    assert_true(lives);
    die(1);
    must(sl_fences_lives(db, 1, &lives, &err));
    assert_false(lives);
}

/* ---- Lanes ---- */

static void nobody_takes_over_before_all_is_done(void **state)
{
    (void)state;
    join(1, 2);
    assert_int_equal(acquire(1, true), 4);
    join(2, 1);
    assert_int_equal(acquire(2, true), 0); /* they are another's */
    die(1);
    assert_int_equal(acquire(2, true), 0);
    assert_int_equal(take(600 * SL_SEC), 2);
    assert_int_equal(acquire(2, true), 0); /* someone is at it */
    done(0, NULL, 0, false);
    assert_int_equal(acquire(2, true), 0); /* not everywhere */
    done(1, NULL, 0, false);
    assert_int_equal(acquire(2, true), 4);
}

static void without_a_fence_nobody_waits(void **state)
{
    (void)state;
    join(1, 1);
    assert_int_equal(acquire(1, true), 4);
    join(2, 0);
    die(1);
    assert_int_equal(acquire(2, false), 4);
}

/* ---- What was delivered ---- */

static void push(int n)
{
    testdb_push(&t, "k", n);
}

static void what_was_delivered_goes_with_it(void **state)
{
    (void)state;
    static const int64_t ids[] = { 1, 3, 77 };
    push(4);
    join(1, 1);
    die(1);
    assert_int_equal(take(SL_SEC), 1);
    assert_int_equal(done(0, ids, 3, false), 2);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox"), 2);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent"), 0);
    assert_false(any());
}

static void it_is_kept_if_that_is_wanted(void **state)
{
    (void)state;
    static const int64_t ids[] = { 1, 3 };
    push(4);
    join(1, 1);
    die(1);
    assert_int_equal(take(SL_SEC), 1);
    assert_int_equal(done(0, ids, 2, true), 2);
    assert_int_equal(
        testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent WHERE id IN (1, 3)"), 2);
}

static void whoever_comes_second_does_nothing(void **state)
{
    (void)state;
    static const int64_t ids[] = { 1, 2 };
    push(2);
    join(1, 1);
    die(1);
    assert_int_equal(take(SL_SEC), 1);
    assert_int_equal(done(0, ids, 1, true), 1);
    assert_int_equal(done(0, ids, 2, true), 0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox"), 1);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent"), 1);
}

static void a_rehearsal_changes_nothing(void **state)
{
    (void)state;
    join(1, 1);
    die(1);
    must(sl_fences_rehearse(db, &err));
    assert_true(any());
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(who_lives_is_left_alone),       TEST(who_is_gone_is_somebody_s_work),
        TEST(after_a_while_it_is_anybody_s), TEST(one_that_leaves_in_order_leaves_nothing),
        TEST(the_database_knows_who_lives),  TEST(nobody_takes_over_before_all_is_done),
        TEST(without_a_fence_nobody_waits),  TEST(what_was_delivered_goes_with_it),
        TEST(it_is_kept_if_that_is_wanted),  TEST(whoever_comes_second_does_nothing),
        TEST(a_rehearsal_changes_nothing),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
