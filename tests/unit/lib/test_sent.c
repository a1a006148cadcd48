/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/sent.h"

#include "core/clock.h"
#include "support/testdb.h"

static const char *dialect;
static testdb t;
static sl_db *db;
static sl_settings settings;
static sl_stop stop;
static sl_err err;

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    testdb_init(&t, dialect, NULL);
    db = testdb_open(&t);
    sl_settings_init(&settings);
    return sl_stop_init(&stop) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_db_close(db);
    sl_settings_fini(&settings);
    sl_stop_fini(&stop);
    testdb_drop(&t);
    return 0;
}

/* So many that were delivered so long ago; a thousand of them have the same time. */
static void keep(int count, int minutes)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             t.pg ? "INSERT INTO sluice_outbox_sent (id, topic, entity_key, payload, attempts, "
                    "epoch, sent_at) "
                    "SELECT i, 't', 'k', '', 1, 0, now() - %d * interval '1 minute' - i / 1000 "
                    "* interval '1 second' "
                    "FROM generate_series(1, %d) AS s (i)"
                  : "INSERT INTO sluice_outbox_sent (id, topic, entity_key, payload, attempts, "
                    "epoch, sent_at) "
                    "WITH RECURSIVE n (m, i) AS (SELECT %d, 1 UNION ALL SELECT m, i + 1 FROM n "
                    "WHERE i < %d) "
                    "SELECT i, 't', 'k', '', 1, 0, strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', "
                    "'-' || (m * 60 + i / "
                    "1000) || ' seconds') FROM n",
             minutes, count);
    testdb_exec(&t, sql);
}

static int64_t kept(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox_sent");
}

static int64_t purge(const char *retention)
{
    int64_t rows = 0;
    if (sl_settings_set(&settings, "retention", retention, &err) != SL_OK ||
        sl_sent_chore(&settings).run(NULL, db, &settings, &stop, &rows, &err) != SL_OK)
        fail_msg("%s", err.text);
    return rows;
}

static void only_what_was_kept_for_long_enough_goes(void **state)
{
    (void)state;
    keep(3, 1);
    keep(2, 59);
    keep(4, 61);
    assert_int_equal(purge("2h"), 0);
    assert_int_equal(kept(), 9);
    assert_int_equal(purge("1h"), 4);
    assert_int_equal(kept(), 5);
    assert_int_equal(purge("30m"), 2);
    assert_int_equal(kept(), 3);
}

static void all_go_in_batches(void **state)
{
    (void)state;
    keep(2750, 10);
    keep(10, 0);
    assert_int_equal(purge("5m"), 2750);
    assert_int_equal(kept(), 10);
}

static void without_retention_all_go(void **state)
{
    (void)state;
    keep(1200, 0);
    assert_int_equal(purge("0s"), 1200);
    assert_int_equal(kept(), 0);
}

static void it_stops_between_two_batches(void **state)
{
    (void)state;
    keep(2000, 10);
    sl_stop_ask(&stop, SL_STOP_SOON);
    assert_int_equal(purge("5m"), 500);
    assert_int_equal(kept(), 1500);
}

static void one_batch_may_be_had_alone(void **state)
{
    (void)state;
    keep(700, 10);
    assert_int_equal(sl_settings_set(&settings, "retention", "5m", &err), SL_OK);
    assert_int_equal(sl_sent_rehearse(db, &err), SL_OK);
    assert_int_equal(kept(), 700);
    assert_int_equal(sl_sent_purge_some(db, &settings, &err), SL_OK);
    assert_int_equal(kept(), 200);
}

static void another_node_is_left_to_it(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    sl_db *other = testdb_open(&t);
    keep(3, 10);
    sl_call calls[] = { { .stmt = sl_db_stmt(other, "tx/begin") },
                        { .stmt = sl_db_stmt(other, "sent/turn") } };
    assert_int_equal(other->ops->run(other, calls, 2, &err), SL_OK);
    assert_int_equal(purge("5m"), 0);
    other->ops->rollback(other);
    assert_int_equal(purge("5m"), 3);
    sl_db_close(other);
}

/* Someone who resends it, or looks at it: the others go, and this one the next time. */
static void what_is_locked_is_passed_by(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    sl_db *other = testdb_open(&t);
    keep(3, 10);
    assert_int_equal(other->ops->script(other, "BEGIN", &err), SL_OK);
    testdb_script(other, &t.names, "SELECT 1 FROM sluice_outbox_sent WHERE id = 2 FOR SHARE");
    assert_int_equal(purge("5m"), 2);
    assert_int_equal(other->ops->script(other, "ROLLBACK", &err), SL_OK);
    assert_int_equal(purge("5m"), 1);
    sl_db_close(other);
}

static void it_is_known_whether_anything_is_kept(void **state)
{
    (void)state;
    bool any = true;
    assert_int_equal(sl_sent_any(db, &any, &err), SL_OK);
    assert_false(any);
    keep(1, 0);
    assert_int_equal(sl_sent_any(db, &any, &err), SL_OK);
    assert_true(any);
    testdb_exec(&t, "DROP TABLE sluice_outbox_sent");
    assert_int_equal(sl_sent_any(db, &any, &err), SL_OK); /* not ours to know */
    assert_false(any);
    assert_int_equal(sl_sent_rehearse(db, &err), SL_OPERATOR);
}

static void it_comes_about_ten_times_in_that_time(void **state)
{
    (void)state;
    static const struct {
        const char *retention;
        int64_t every_ns;
    } cases[] = {
        { "0s", 60 * SL_SEC }, { "100ms", SL_SEC }, { "50s", 5 * SL_SEC }, { "7d", 60 * SL_SEC }
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(sl_settings_set(&settings, "retention", cases[i].retention, &err),
                         SL_OK);
        assert_int_equal(sl_sent_chore(&settings).every_ns, cases[i].every_ns);
    }
}

static int on(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_what_was_kept_for_long_enough_goes),
        TEST(all_go_in_batches),
        TEST(without_retention_all_go),
        TEST(it_stops_between_two_batches),
        TEST(one_batch_may_be_had_alone),
        TEST(another_node_is_left_to_it),
        TEST(what_is_locked_is_passed_by),
        TEST(it_is_known_whether_anything_is_kept),
        TEST(it_comes_about_ten_times_in_that_time),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
