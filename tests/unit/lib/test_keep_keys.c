/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/keep_keys.h"

#include "support/fakedb.h"
#include "support/testdb.h"

static const char *dialect;
static testdb t;
static sl_db *db;
static sl_settings settings;
static sl_stop stop;

static int setup(void **state)
{
    (void)state;
    sl_settings_init(&settings);
    assert_true(sl_stop_init(&stop));
    testdb_init(&t, dialect, NULL);
    db = testdb_open(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_db_close(db);
    testdb_drop(&t);
    sl_stop_fini(&stop);
    sl_settings_fini(&settings);
    return 0;
}

static int64_t run(void)
{
    sl_err err = { 0 };
    int64_t rows = -1;
    if (sl_keep_keys(db, &settings, &stop, &rows, &err) != SL_OK)
        fail_msg("%s", err.text);
    return rows;
}

static void insert(const char *key)
{
    char sql[200];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO sluice_outbox (topic, payload, idempotency_key) VALUES ('t', 'p', %s)",
        key);
    testdb_exec(&t, sql);
}

/* Keys k1 to kN, each with a message. */
static void insert_many(int count)
{
    char sql[300];
    if (t.pg)
        snprintf(sql, sizeof sql,
                 "INSERT INTO sluice_outbox (topic, payload, idempotency_key) SELECT 't', 'p', "
                 "'k' || i FROM generate_series(1, %d) i",
                 count);
    else
        snprintf(
            sql, sizeof sql,
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
            "INSERT INTO sluice_outbox (topic, payload, idempotency_key) SELECT 't', 'p', "
            "'k' || i FROM n",
            count);
    testdb_exec(&t, sql);
}

/* As if what is marked had been marked so much earlier. */
static void days_pass(int days)
{
    char sql[300];
    if (t.pg)
        snprintf(
            sql, sizeof sql,
            "UPDATE sluice_outbox_idempotency SET gone_at = gone_at - %d * interval '1 day' "
            "WHERE gone_at IS NOT NULL",
            days);
    else
        snprintf(sql, sizeof sql,
                 "UPDATE sluice_outbox_idempotency SET gone_at = strftime('%%Y-%%m-%%d "
                 "%%H:%%M:%%f', gone_at, '-%d days') WHERE gone_at IS NOT NULL",
                 days);
    testdb_exec(&t, sql);
}

static int64_t registered(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox_idempotency");
}

static int64_t marked(void)
{
    return testdb_int(
        &t, "SELECT count(*) FROM sluice_outbox_idempotency WHERE gone_at IS NOT NULL");
}

/* ---- The table itself ---- */

static void a_key_is_taken_once(void **state)
{
    (void)state;
    insert("'a'");
    insert("'a'"); /* no error: it is left out */
    insert("'A'");
    insert("'a ' ");
    insert("NULL");
    insert("NULL");
    assert_int_equal(testdb_count(&t), 5);
    assert_int_equal(registered(), 3);
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    insert("'a'");
    assert_int_equal(testdb_count(&t), 0);
}

static void several_at_once(void **state)
{
    (void)state;
    testdb_exec(&t,
                "INSERT INTO sluice_outbox (topic, payload, idempotency_key) VALUES ('1', 'p', "
                "'a'), ('2', 'p', 'a'), ('3', 'p', NULL), ('4', 'p', 'b'), ('5', 'p', 'b')");
    testdb_expect(&t, "1\n3\n4", "SELECT topic FROM sluice_outbox ORDER BY id");
}

static void what_is_rolled_back_registers_nothing(void **state)
{
    (void)state;
    testdb_exec(&t, "BEGIN");
    insert("'a'");
    testdb_exec(&t, "SAVEPOINT s");
    insert("'b'");
    testdb_exec(&t, "ROLLBACK TO s");
    testdb_exec(&t, "COMMIT");
    testdb_expect(&t, "a", "SELECT idempotency_key FROM sluice_outbox_idempotency");
    testdb_exec(&t, "BEGIN");
    insert("'b'");
    testdb_exec(&t, "ROLLBACK");
    insert("'b'");
    assert_int_equal(testdb_count(&t), 2);
}

/* The unique index stays behind it. */
static void what_was_never_registered_meets_the_index(void **state)
{
    (void)state;
    insert("'a'");
    testdb_exec(&t, "DELETE FROM sluice_outbox_idempotency");
    testdb_exec(&t,
                "INSERT INTO sluice_outbox (topic, payload, idempotency_key) VALUES ('t', 'p', "
                "'a') ON CONFLICT DO NOTHING");
    assert_int_equal(testdb_count(&t), 1);
}

/* ---- The chore ---- */

static void nothing_is_nothing(void **state)
{
    (void)state;
    assert_int_equal(run(), 0);
    insert("NULL");
    assert_int_equal(run(), 0);
    assert_int_equal(registered(), 0);
}

static void a_key_is_kept_for_its_time(void **state)
{
    (void)state;
    insert("'living'");
    insert("'gone'");
    assert_int_equal(run(), 0);
    assert_int_equal(marked(), 0);
    testdb_exec(&t, "DELETE FROM sluice_outbox WHERE idempotency_key = 'gone'");
    assert_int_equal(run(), 0);
    assert_int_equal(marked(), 1);
    days_pass(6);
    assert_int_equal(run(), 0);
    insert("'gone'");
    assert_int_equal(testdb_count(&t), 1);
    days_pass(1);
    assert_int_equal(run(), 1);
    testdb_expect(&t, "living", "SELECT idempotency_key FROM sluice_outbox_idempotency");
    insert("'gone'");
    insert("'living'");
    assert_int_equal(testdb_count(&t), 2);
}

/* A second look must not begin the time anew. */
static void the_time_begins_once(void **state)
{
    (void)state;
    insert("'a'");
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    run();
    days_pass(4);
    run();
    days_pass(4);
    assert_int_equal(run(), 1);
}

static void the_setting_says_how_long(void **state)
{
    (void)state;
    sl_err err = { 0 };
    assert_int_equal(sl_settings_set(&settings, "idempotency_keep", "30d", &err), SL_OK);
    insert("'a'");
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    run();
    days_pass(29);
    assert_int_equal(run(), 0);
    days_pass(1);
    assert_int_equal(run(), 1);
}

static void a_dead_letter_keeps_its_key(void **state)
{
    (void)state;
    insert("'a'");
    testdb_exec(&t, "INSERT INTO sluice_outbox_dead (id, topic, payload, attempts, epoch, "
                    "idempotency_key) VALUES (1, 't', 'p', 1, 0, 'a')");
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    run();
    assert_int_equal(marked(), 0);
    insert("'a'");
    assert_int_equal(testdb_count(&t), 0);
    testdb_exec(&t, "DELETE FROM sluice_outbox_dead");
    run();
    assert_int_equal(marked(), 1);
}

/* More than a page, some of them living, from whatever place the walk begins at. */
static void all_are_found_whatever_their_number(void **state)
{
    (void)state;
    insert_many(4500);
    testdb_exec(&t, "DELETE FROM sluice_outbox WHERE id % 3 > 0");
    assert_int_equal(run(), 0);
    assert_int_equal(marked(), 3000);
    days_pass(8);
    assert_int_equal(run(), 3000);
    assert_int_equal(registered(), 1500);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox o JOIN "
                                    "sluice_outbox_idempotency i ON i.idempotency_key = "
                                    "o.idempotency_key WHERE i.gone_at IS NULL"),
                     1500);
}

static void a_stop_ends_it(void **state)
{
    (void)state;
    insert_many(10);
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    sl_stop_ask(&stop, SL_STOP_SOON);
    assert_int_equal(run(), 0);
    assert_int_equal(marked(), 0);
}

/* A producer that has not committed yet: its key is not there, so that nothing of it can be gone. SQLite has one writer
 * at a time. */
static void a_producer_at_work_is_let_alone(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    testdb_exec(&t, "BEGIN");
    insert("'a'");
    run();
    testdb_exec(&t, "COMMIT");
    assert_int_equal(marked(), 0);
    run();
    assert_int_equal(marked(), 0);
}

/* Columns that are called otherwise, in a table that was there before, with a collation of its own. */
static void an_adopted_table(void **state)
{
    (void)state;
    sl_opt_map map = { 0 };
    sl_schema_done done;
    sl_err err = { 0 };
    sl_db_close(db);
    testdb_drop(&t);
    testdb_map_all(&map, "Their_");
    testdb_make(&t, dialect, &map);
    testdb_exec(&t, testdb_or(&t,
                              "CREATE TABLE sluice_outbox (id bigserial PRIMARY KEY, payload "
                              "bytea NOT NULL, idempotency_key varchar(80))",
                              "CREATE TABLE sluice_outbox (id INTEGER PRIMARY KEY "
                              "AUTOINCREMENT, payload BLOB NOT NULL, idempotency_key)"));
    testdb_exec(&t, "INSERT INTO sluice_outbox (payload, idempotency_key) VALUES ('p', 'old'), "
                    "('p', NULL), ('p', 'older')");
    if (sl_schema_init(t.eye, &t.names, &done, &err) != SL_OK)
        fail_msg("%s", err.text);
    db = testdb_open(&t);
    insert("'old'"); /* registered when it was adopted */
    insert("'new'");
    assert_int_equal(testdb_count(&t), 4);
    testdb_exec(&t, "DELETE FROM sluice_outbox WHERE idempotency_key <> 'older'");
    run();
    insert("'new'");
    insert("'old'");
    assert_int_equal(testdb_count(&t), 2);
    assert_int_equal(marked(), 2);
    days_pass(8);
    assert_int_equal(run(), 2);
    insert("'new'");
    assert_int_equal(testdb_count(&t), 3);
    testdb_map_fini(&map);
}

/* ---- The bounds of a run ---- */

/* All pages are full, and nothing in them is gone: who has a huge backlog is not read whole each time. */
static void a_run_that_looks_in_vain_ends(void **state)
{
    (void)state;
    fakedb f;
    fakedb_init(&f);
    sl_settings_init(&settings);
    assert_true(sl_stop_init(&stop));
    sl_val rows[1][SL_STMT_MAX] = { { sl_int(1000), sl_int(5000000), sl_int(7) } };
    f.rows = (const sl_val(*)[SL_STMT_MAX])rows;
    f.nrows = 1;
    db = &f.base;
    run();
    size_t pages = 0;
    for (const char *p = sl_buf_text(&f.said); (p = strstr(p, "idempotency/page")); p++)
        pages++;
    assert_int_equal(pages, 100);
    fakedb_fini(&f);
    sl_stop_fini(&stop);
    sl_settings_fini(&settings);
}

static void a_failure_is_told(void **state)
{
    (void)state;
    for (int at = 1; at <= 3; at++) {
        fakedb f;
        sl_err err = { 0 };
        int64_t rows;
        fakedb_init(&f);
        f.fail_at = at;
        f.rc = SL_AGAIN;
        sl_val row[1][SL_STMT_MAX] = { { sl_int(1), sl_int(5), sl_int(1) } };
        f.rows = (const sl_val(*)[SL_STMT_MAX])row;
        f.nrows = 1;
        sl_settings_init(&settings);
        assert_true(sl_stop_init(&stop));
        assert_int_equal(sl_keep_keys(&f.base, &settings, &stop, &rows, &err), SL_AGAIN);
        fakedb_fini(&f);
        sl_stop_fini(&stop);
        sl_settings_fini(&settings);
    }
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_key_is_taken_once),
        TEST(several_at_once),
        TEST(what_is_rolled_back_registers_nothing),
        TEST(what_was_never_registered_meets_the_index),
        TEST(nothing_is_nothing),
        TEST(a_key_is_kept_for_its_time),
        TEST(the_time_begins_once),
        TEST(the_setting_says_how_long),
        TEST(a_dead_letter_keeps_its_key),
        TEST(all_are_found_whatever_their_number),
        TEST(a_stop_ends_it),
        TEST(a_producer_at_work_is_let_alone),
        TEST(an_adopted_table),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_looks_in_vain_ends),
        cmocka_unit_test(a_failure_is_told),
    };
    int failed = cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
    return failed ? failed : testdb_each(on);
}
