/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/below.h"

#include "core/clock.h"
#include "support/testdb.h"

enum { LANES = 64, FLOOR = 1000 };

static const char *dialect;
static testdb t;
static sl_db *db;
static sl_settings settings;
static sl_err err;
static sl_below b;
static sl_chore chore;
static int64_t settled;

static int64_t written(void *ctx)
{
    assert_ptr_equal(ctx, &settled);
    return settled;
}

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    settled = 0;
    b = (sl_below){ .written = written, .ctx = &settled, .lanes = sl_lanes_new() };
    chore = sl_below_chore(&b);
    sl_lanes_void(b.lanes, LANES);
    for (size_t i = 0; i < LANES; i++)
        sl_lanes_grant(b.lanes, i, 1, FLOOR);
    testdb_init(&t, dialect, NULL);
    db = testdb_open(&t);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_below_fini(&b);
    sl_lanes_free(b.lanes);
    sl_db_close(db);
    testdb_drop(&t);
    return 0;
}

static bool due(int64_t rows)
{
    return chore.due(chore.ctx, rows);
}

static int64_t look(void)
{
    int64_t rows = 0;
    if (chore.run(chore.ctx, db, &settings, NULL, &rows, &err) != SL_OK)
        fail_msg("%s", err.text);
    return rows;
}

/* When it is to be looked below each floor, as a worker finds it; 0: something is there. */
static void look_times(int64_t *times)
{
    sl_lane_uses uses = { 0 };
    sl_lanes_pick(b.lanes, 1, &uses);
    assert_int_equal(uses.count, LANES);
    for (size_t i = 0; i < uses.count; i++)
        times[uses.v[i].lane] = uses.v[i].below ? 0 : uses.v[i].forget_ns;
    for (size_t i = 0; i < uses.count; i++)
        uses.v[i].below = false; /* it was read */
    sl_lanes_put(b.lanes, &uses);
    free(uses.v);
}

/* Returns its lane. */
static int64_t insert(int64_t id, bool held)
{
    char sql[200];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO sluice_outbox (id, topic, entity_key, payload, held) OVERRIDING SYSTEM "
        "VALUE VALUES (%lld, 't', 'k', '', %s)",
        (long long)id, held ? "true" : "false");
    testdb_exec(&t, sql);
    return testdb_int(&t, "SELECT max(lane)::bigint FROM sluice_outbox");
}

/* ---- When ---- */

static void it_is_due_after_many_messages(void **state)
{
    (void)state;
    assert_false(due(0)); /* a node that has little to do does not even connect for it */
    settled = 1999;
    assert_false(due(0));
    settled = 2000;
    assert_true(due(0));
    assert_false(due(0)); /* counted from there */
    settled = 4000;
    assert_true(due(3));
}

static void what_takes_long_comes_later(void **state)
{
    (void)state;
    settled = 2000;
    b.next_ns = sl_now_ns() + 3600 * SL_SEC;
    assert_false(due(0));
    b.next_ns = sl_now_ns();
    assert_true(due(0));
}

static void where_it_is_of_no_use_it_is_never_due(void **state)
{
    (void)state;
    if (t.pg && !testdb_rotated)
        return;
    int64_t rows = look();
    int64_t times[LANES];
    settled = INT64_MAX;
    assert_false(due(rows));
    look_times(times);
    assert_true(times[0] == 0); /* the workers look by themselves */
}

/* A server that is being restarted says nothing of the table: only an answer ends the looks for good. */
static void after_a_failure_it_is_due_again(void **state)
{
    (void)state;
    int64_t rows = 0;
    if (!t.pg || testdb_rotated)
        return;
    testdb_cut(&t);
    assert_int_equal(chore.run(chore.ctx, db, &settings, NULL, &rows, &err), SL_AGAIN);
    settled = 2000;
    assert_true(due(rows));
}

/* ---- What ---- */

static void what_lives_below_is_found(void **state)
{
    (void)state;
    int64_t times[LANES];
    if (!t.pg || testdb_rotated)
        return;
    int64_t lane = insert(5, false);
    int64_t before_ns = sl_now_ns();
    assert_int_equal(look(), 1);
    look_times(times);
    for (int i = 0; i < LANES; i++)
        assert_true(i == lane ? times[i] == 0 : times[i] > before_ns + SL_SEC);
    look_times(times); /* told once */
    assert_true(times[lane] > before_ns + SL_SEC);
}

static void what_is_held_or_above_is_not(void **state)
{
    (void)state;
    int64_t times[LANES];
    if (!t.pg || testdb_rotated)
        return;
    insert(5, true);
    int64_t lane = insert(FLOOR, false);
    assert_int_equal(look(), 0);
    look_times(times);
    assert_true(times[lane] > sl_now_ns());
}

/* Lanes that were voided meanwhile are others. */
static void a_look_at_lanes_that_are_gone_says_nothing(void **state)
{
    (void)state;
    sl_lane_uses uses = { 0 };
    sl_lane_floors floors = { 0 };
    sl_lanes_floors(b.lanes, &floors);
    assert_int_equal(floors.count, LANES);
    assert_int_equal(floors.floors[LANES - 1], FLOOR);
    sl_lanes_void(b.lanes, 2);
    sl_lanes_grant(b.lanes, 1, 2, 7);
    sl_lanes_looked(b.lanes, &floors, INT64_MAX);
    sl_lanes_pick(b.lanes, 1, &uses);
    assert_int_equal(uses.count, 1);
    assert_true(uses.v[0].forget_ns == 0 && !uses.v[0].below);
    sl_lanes_put(b.lanes, &uses);
    sl_lanes_floors(b.lanes, &floors);
    assert_true(floors.count == 1 && floors.lanes[0] == 1 && floors.floors[0] == 7);
    sl_lane_floors_fini(&floors);
    free(uses.v);
}

static int run_group(const char *which)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_is_due_after_many_messages),
        TEST(what_takes_long_comes_later),
        TEST(where_it_is_of_no_use_it_is_never_due),
        TEST(after_a_failure_it_is_due_again),
        TEST(what_lives_below_is_found),
        TEST(what_is_held_or_above_is_not),
        TEST(a_look_at_lanes_that_are_gone_says_nothing),
    };
    dialect = which;
    int failed = cmocka_run_group_tests_name(which, tests, NULL, NULL);
    if (strcmp(which, "postgres") != 0)
        return failed;
    testdb_rotated = true;
    failed += cmocka_run_group_tests_name("rotated", tests, NULL, NULL);
    testdb_rotated = false;
    return failed;
}

int main(void)
{
    return testdb_each(run_group);
}
