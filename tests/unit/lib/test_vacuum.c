/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/vacuum.h"

#include "core/clock.h"
#include "support/testdb.h"

static const char *dialect;
static testdb t;
static sl_db *db;
static sl_settings settings;
static sl_err err;
static sl_vacuum v;
static sl_chore chore;
static int64_t deleted;

static int64_t written(void *ctx)
{
    assert_ptr_equal(ctx, &deleted);
    return deleted;
}

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    deleted = 0;
    v = (sl_vacuum){ .written = written, .ctx = &deleted };
    chore = sl_vacuum_chore(&v);
    testdb_init(&t, dialect, NULL);
    db = testdb_open(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_db_close(db);
    testdb_drop(&t);
    return 0;
}

static bool due(int64_t rows)
{
    return chore.due(chore.ctx, rows);
}

/* ---- When ---- */

static void it_is_due_after_many_rows(void **state)
{
    (void)state;
    assert_false(due(0));
    deleted = 4999;
    assert_false(due(0));
    deleted = 5000;
    assert_true(due(0));
    assert_false(due(0)); /* counted from there */
    deleted = 10000;
    assert_true(due(0));
}

/* What a vacuum had to leave, and what lives, puts the next one off. */
static void it_is_due_later_where_it_helps_less(void **state)
{
    (void)state;
    deleted = 10000;
    assert_true(due(0));
    deleted = 40000;
    assert_false(due(50000));
    deleted = 60000;
    assert_true(due(50000));
    assert_false(due(INT64_MAX));
    deleted = 1059999;
    assert_false(due(INT64_MAX));
    deleted = 1060000;
    assert_true(due(INT64_MAX)); /* but not for ever */
    assert_false(due(7));
    deleted = 1070000;
    assert_true(due(7));
}

static void who_may_not_is_not_asked_again(void **state)
{
    (void)state;
    deleted = 10000;
    assert_true(due(0));
    deleted = INT64_MAX;
    assert_false(due(-1));
}

/* ---- What ---- */

static int64_t vacuum(void)
{
    int64_t rows = 0;
    if (chore.run(chore.ctx, db, &settings, NULL, &rows, &err) != SL_OK)
        fail_msg("%s", err.text);
    return rows;
}

static void it_pauses_for_those_who_work(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    vacuum();
    testdb_script(db, &t.names,
                  "DO $$ BEGIN ASSERT current_setting('vacuum_cost_delay') = '1ms'; END $$");
}

/* Those who work are quicker than one that pauses as long as for a few. */
static void it_pauses_less_the_more_has_gone(void **state)
{
    (void)state;
    static const struct {
        int64_t gone, points;
    } cases[] = { { 5000, 200 }, { 19999, 200 }, { 100000, 2000 }, { 10000000, 10000 } };
    for (size_t i = 0; t.pg && i < sizeof cases / sizeof *cases; i++) {
        char sql[120];
        deleted += cases[i].gone;
        assert_true(due(0));
        vacuum();
        snprintf(sql, sizeof sql,
                 "DO $$ BEGIN ASSERT current_setting('vacuum_cost_limit') = '%lld'; END $$",
                 (long long)cases[i].points);
        testdb_script(db, &t.names, sql);
    }
}

static void wait_for(const char *sql, int64_t count)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (testdb_int(&t, sql) != count) {
        assert_true(sl_now_ns() < until_ns);
        usleep(10000);
    }
}

/* Its node has ended, and did not wait for it. */
static void what_nobody_waits_for_ends(void **state)
{
    (void)state;
    static const char sleeps[] =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600)%'";
    sl_stmt s;
    if (!t.pg ||
        testdb_int(&t, "SELECT current_setting('server_version_num')::bigint") < 140000)
        return;
    vacuum();
    s = testdb_stmt(db, 0, "SELECT pg_sleep(600)", 0, SL_T_INT8);
    sl_call call = { .stmt = &s };
    sl_post post = { .calls = &call, .count = 1 };
    assert_int_equal(db->ops->post(db, &post, &err), SL_OK);
    wait_for(sleeps, 1);
    sl_db_close(db);
    db = NULL;
    wait_for(sleeps, 0);
}

/* An autovacuum that is at it is left to it: then the next one counts. How much room it makes depends on what others can
 * still see: bench/parts/size.py. */
static void the_outbox_and_what_changes_with_it_are_vacuumed(void **state)
{
    (void)state;
    static const char *const tables[] = { "", "_keys", "_claims" };
    if (!t.pg)
        return;
    testdb_fill(&t, 100, 1);
    testdb_exec(&t, "DELETE FROM sluice_outbox");
    for (size_t i = 0; i < COUNT(tables); i++) {
        char sql[128];
        int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
        snprintf(sql, sizeof sql,
                 "SELECT pg_stat_get_vacuum_count('sluice_outbox%s'::regclass)", tables[i]);
        while (testdb_int(&t, sql) == 0 && sl_now_ns() < until_ns)
            vacuum();
        assert_true(testdb_int(&t, sql) > 0);
    }
}

static void half_of_what_lives_puts_it_off(void **state)
{
    (void)state;
    testdb_fill(&t, 3000, 1);
    int64_t rows = vacuum();
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (t.pg && rows < 1400 && sl_now_ns() < until_ns) /* an autovacuum was at it */
        rows = vacuum();
    if (t.pg)
        assert_in_range(rows, 1400, 1600);
    else
        assert_int_equal(rows, -1); /* nothing is to be done there */
}

static int64_t vacuums(void)
{
    return testdb_int(&t, "SELECT pg_stat_get_vacuum_count('sluice_outbox'::regclass)");
}

/* Each goes through all indexes: of a large backlog not for each few rows that have gone, and not for the first ones. */
static void a_large_backlog_is_left_until_most_of_it_has_gone(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    testdb_fill(&t, 60000, 1);
    testdb_exec(&t, "ANALYZE sluice_outbox");
    int64_t before = vacuums();
    assert_in_range(vacuum(), 40000, 41000);
    assert_int_equal(vacuums(), before);
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (vacuums() == before && sl_now_ns() < until_ns) /* an autovacuum may be at it */
        assert_in_range(vacuum(), 40000, 41000);
    assert_true(vacuums() > before);
}

/* A node that starts beside many dead rows: they are what the first one is for. */
static void what_is_dead_at_the_start_goes_at_once(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    testdb_fill(&t, 60000, 1);
    testdb_exec(&t, "ALTER TABLE sluice_outbox SET (autovacuum_enabled = false)");
    testdb_exec(&t, "ANALYZE sluice_outbox");
    int64_t before = vacuums();
    testdb_exec(&t, "DELETE FROM sluice_outbox WHERE id % 3 > 0");
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (vacuums() == before && sl_now_ns() < until_ns) { /* deletions are reported late */
        v.asked = false;
        vacuum();
    }
    assert_true(vacuums() > before);
}

static void a_role_that_does_not_own_the_table_leaves_it(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    assert_int_equal(db->ops->script(db, "SET ROLE pg_read_all_data", &err), SL_OK);
    assert_int_equal(vacuum(), -1);
}

static int on(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_is_due_after_many_rows),
        TEST(it_is_due_later_where_it_helps_less),
        TEST(who_may_not_is_not_asked_again),
        TEST(it_pauses_for_those_who_work),
        TEST(it_pauses_less_the_more_has_gone),
        TEST(what_nobody_waits_for_ends),
        TEST(the_outbox_and_what_changes_with_it_are_vacuumed),
        TEST(half_of_what_lives_puts_it_off),
        TEST(a_large_backlog_is_left_until_most_of_it_has_gone),
        TEST(what_is_dead_at_the_start_goes_at_once),
        TEST(a_role_that_does_not_own_the_table_leaves_it),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
