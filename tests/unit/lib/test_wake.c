/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wake.h"

#include "support/testdb.h"

static const char *dialect;
static testdb t;
static sl_db *a, *b;
static sl_wake of_a, of_b;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    of_a = of_b = (sl_wake){ 0 };
    testdb_init(&t, dialect, NULL);
    a = testdb_open(&t);
    b = testdb_open(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_db_close(a);
    sl_db_close(b);
    testdb_drop(&t);
    return 0;
}

static void must(sl_rc rc)
{
    if (rc != SL_OK)
        fail_msg("%s", err.text);
}

static bool sleeps(sl_wake *w, sl_db *db, int64_t ns)
{
    must(sl_wake_sleep(w, db, -1, ns, &err));
    return !w->woken;
}

/* It is woken by what was before no longer: on SQLite a change is looked at some more times. */
static void come_to_rest(sl_wake *w, sl_db *db)
{
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    while (!sleeps(w, db, t.pg ? 20 * SL_MS : 600 * SL_MS))
        assert_true(sl_now_ns() < until_ns);
}

static void a_commit_is_heard(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        must(sl_wake_arm(&of_a, a, &err));
        assert_true(of_a.armed && of_a.mine);
        come_to_rest(&of_a, a);
        testdb_push(&t, "x", 1);
        assert_false(sleeps(&of_a, a, 20 * SL_SEC));
        must(sl_wake_disarm(&of_a, a, &err));
        assert_false(of_a.armed || of_a.mine);
    }
}

/* Also while other statements run on that connection. */
static void one_that_stays_armed_hears_all(void **state)
{
    (void)state;
    must(sl_wake_arm(&of_a, a, &err));
    for (int i = 0; i < 3; i++) {
        testdb_push(&t, "x", 1);
        must(sl_db_run1(a, "floor/writers", NULL, NULL, NULL, NULL, &err));
        must(sl_wake_arm(&of_a, a, &err)); /* it is */
        assert_false(sleeps(&of_a, a, 20 * SL_SEC));
    }
}

/* It is seen by the look that follows. */
static void what_came_before_is_forgotten(void **state)
{
    (void)state;
    must(sl_wake_arm(&of_a, a, &err));
    must(sl_wake_disarm(&of_a, a, &err));
    testdb_push(&t, "x", 1);
    must(sl_wake_arm(&of_a, a, &err));
    assert_true(!t.pg || sleeps(&of_a, a, 20 * SL_MS));
    come_to_rest(&of_a, a);
}

/* A change of a SQLite file comes before what it means can be seen. */
static void a_change_is_looked_at_again(void **state)
{
    (void)state;
    int looks = 0;
    if (t.pg)
        return;
    must(sl_wake_arm(&of_a, a, &err));
    for (int tries = 10; looks < 4;
         tries--) { /* whoever is stopped meanwhile looks less often */
        assert_true(tries > 0);
        testdb_push(&t, "x", 1);
        for (looks = 0; !sleeps(&of_a, a, 600 * SL_MS); looks++)
            assert_true(looks < 20);
    }
}

/* Producers pay for it only then. */
static void nobody_notifies_while_nobody_sleeps(void **state)
{
    (void)state;
    bool woken = true;
    if (!t.pg)
        return; /* files change in any case */
    must(sl_db_run1(b, "wake/listen", NULL, NULL, NULL, NULL, &err));
    testdb_push(&t, "x", 1);
    must(sl_wake_arm(&of_a, a, &err));
    must(sl_wake_disarm(&of_a, a, &err)); /* tells the others */
    must(b->ops->await(b, -1, sl_now_ns() + 20 * SL_SEC, &woken, &err));
    assert_true(woken);
    testdb_push(&t, "x", 1);
    must(b->ops->await(b, -1, sl_now_ns() + 50 * SL_MS, &woken, &err));
    assert_false(woken);
}

/* It has looked for sleepers already, and would not notify. */
static void a_producer_at_work_keeps_us_awake(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    testdb_script(b, &t.names,
                  "BEGIN; INSERT INTO sluice_outbox (topic, payload) VALUES ('t', '')");
    must(sl_wake_arm(&of_a, a, &err));
    assert_false(of_a.armed || of_a.mine);
    int64_t began_ns = sl_now_ns();
    must(sl_wake_wait(&of_a, a, -1, 1, 3600 * SL_SEC, &err)); /* it does not rely on it */
    assert_true(sl_now_ns() - began_ns < 10 * SL_SEC);
    testdb_script(b, &t.names, "COMMIT");
    must(sl_wake_arm(&of_a, a, &err));
    assert_true(of_a.armed && of_a.mine);
}

/* One of them has the lock; when it leaves, the others are told. */
static void many_sleep(void **state)
{
    (void)state;
    must(sl_wake_arm(&of_a, a, &err));
    must(sl_wake_arm(&of_b, b, &err));
    assert_true(of_b.armed);
    assert_int_equal(of_b.mine, !t.pg);
    testdb_push(&t, "x", 1);
    assert_false(sleeps(&of_a, a, 20 * SL_SEC));
    assert_false(sleeps(&of_b, b, 20 * SL_SEC));
    must(sl_wake_disarm(&of_a, a, &err));
    if (!t.pg)
        return;
    assert_false(
        sleeps(&of_b, b, 20 * SL_SEC)); /* it is told, also if both were woken before */
    must(sl_wake_arm(&of_b, b, &err));
    assert_true(of_b.mine);
    must(sl_wake_arm(&of_a, a, &err));
    assert_true(of_a.armed && !of_a.mine);
    assert_true(sleeps(&of_b, b, 20 * SL_MS));
    must(sl_wake_disarm(&of_b, b, &err));
    assert_false(sleeps(&of_a, a, 20 * SL_SEC));
}

static void a_descriptor_ends_the_sleep(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    must(sl_wake_arm(&of_a, a, &err));
    assert_int_equal(write(fds[1], "x", 1), 1);
    must(sl_wake_sleep(&of_a, a, fds[0], 3600 * SL_SEC, &err));
    assert_false(of_a.woken);
    close(fds[0]);
    close(fds[1]);
}

static void the_test_tells(void **state)
{
    (void)state;
    bool works = false;
    must(sl_wake_test(a, b, 20 * SL_SEC, &works, &err));
    assert_true(works);
    if (!t.pg)
        return;
    sl_names elsewhere; /* what it says is for others: as if it were lost */
    must(sl_names_init(&elsewhere, "elsewhere", NULL, &err));
    sl_dsn dsn = testdb_dsn(&t);
    dsn.names = &elsewhere;
    sl_db *stranger = testdb_open_as(&dsn);
    must(sl_wake_test(a, stranger, 100 * SL_MS, &works, &err));
    sl_db_close(stranger);
    sl_names_fini(&elsewhere);
    assert_false(works);
}

static int on(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_commit_is_heard),
        TEST(one_that_stays_armed_hears_all),
        TEST(what_came_before_is_forgotten),
        TEST(a_change_is_looked_at_again),
        TEST(nobody_notifies_while_nobody_sleeps),
        TEST(a_producer_at_work_keeps_us_awake),
        TEST(many_sleep),
        TEST(a_descriptor_ends_the_sleep),
        TEST(the_test_tells),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
