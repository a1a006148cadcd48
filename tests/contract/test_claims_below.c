/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What appears below the floors, where nobody reads: a message whose id was not drawn by its own insert. It is found soon,
 * and so it is known when nothing is left, however much waits there that must not go. Both are asked in the order of the
 * ids, as long as few live there; each test is made on both sides of that bound.
 */
#include "contract/ordered.h"

#include "core/mem.h"

/* More than sql/postgres/lanes/below looks at, and ordered/peek and guard/peek. */
enum { MANY = 20100, MANY_PEEKED = 1100 };

/* `count` messages of each of so many keys, in turn. */
static void fill(int count, int keys)
{
    char sql[256];
    if (t.pg)
        snprintf(sql, sizeof sql,
                 "INSERT INTO sluice_outbox (topic, entity_key, payload) SELECT 'x', 'k' || (i "
                 "%% %d), 'p' FROM generate_series(1, %d) i",
                 keys, count * keys);
    else
        snprintf(sql, sizeof sql,
                 "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                 "%d) INSERT INTO "
                 "sluice_outbox (topic, entity_key, payload) SELECT 'x', 'k' || (i %% %d), 'p' "
                 "FROM n",
                 count * keys, keys);
    testdb_exec(&t, sql);
}

static void insert_at(int64_t id, const char *key)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "INSERT INTO sluice_outbox (id, topic, entity_key, payload) %sVALUES (%lld, 'x', "
             "'%s', 'p')",
             testdb_or(&t, "OVERRIDING SYSTEM VALUE ", ""), (long long)id, key);
    testdb_exec(&t, sql);
}

/* ---- A worker finds it ---- */

static int64_t lowest_floor(void)
{
    sl_lane_floors f = { 0 };
    int64_t low = INT64_MAX;
    sl_lanes_floors(node.lanes, &f);
    for (size_t i = 0; i < f.count; i++)
        low = f.floors[i] < low ? f.floors[i] : low;
    sl_lane_floors_fini(&f);
    return low;
}

/* Delivers until each lane has a floor behind `id`. */
static void raise_floors(int64_t id)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (lowest_floor() <= id) {
        assert_true(sl_now_ns() < until_ns);
        fill(1, 200);
        while (worker_take(&a, ALL) > 0)
            assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
}

static void what_appears_below_the_floors_is_found(void **state)
{
    (void)state;
    open_worker(&a);
    fill(1, 200);
    raise_floors(100);
    for (int64_t id = 100; id > 90; id -= 5) {
        insert_at(id, "late");
        assert_int_equal(take_some(&a, ALL), 1);
        expect_taken(&a, id == 100 ? "100" : "95");
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
    assert_int_equal(testdb_count(&t), 0);
}

/* Beside a load that never ends: no turn finds nothing. */
static void also_by_a_busy_worker(void **state)
{
    (void)state;
    open_worker(&a);
    fill(1, 200);
    raise_floors(100);
    insert_at(7, "late");
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    for (bool found = false; !found;) {
        assert_true(sl_now_ns() < until_ns);
        fill(1, 300);
        take_some(&a, ALL);
        for (size_t i = 0; i < a.batch.count; i++)
            found |= a.batch.msgs[i].id == 7;
        assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    }
}

/* Found by whoever looks for all lanes, who does not look again soon; and then the session ends before it is read. */
static void what_was_found_and_not_read_is_found_again(void **state)
{
    (void)state;
    sl_lane_floors f = { 0 };
    if (!t.pg)
        return; /* there is no session to cut, and nobody looks for others */
    open_worker(&a);
    fill(1, 200);
    raise_floors(100);
    insert_at(95, "late");
    sl_lanes_floors(node.lanes, &f);
    memcpy(f.found, f.lanes, f.count * sizeof *f.found);
    f.founds = f.count;
    sl_lanes_looked(node.lanes, &f, sl_now_ns() + 3600 * SL_SEC);
    sl_lane_floors_fini(&f);
    testdb_cut(&t);
    assert_int_equal(worker_try_take(&a, ALL), SL_AGAIN);
    worker_close(&a);
    open_worker(&a);
    assert_int_equal(take_some(&a, ALL), 1);
    expect_taken(&a, "95");
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
}

/* ---- The statement ---- */

static sl_rc note_lane(void *ctx, const sl_val *cols, sl_err *err)
{
    (void)err;
    *(uint64_t *)ctx |= UINT64_C(1) << cols[0].i;
    return SL_OK;
}

/* Of 64 lanes, as bits: in which something lives below `floor`. */
static uint64_t look_below(const int64_t *lanes, const int64_t *floors, size_t n)
{
    uint64_t found = 0;
    sl_err err;
    sl_val in[] = { sl_ints(lanes, n), sl_ints(floors, n) };
    assert_int_equal(sl_db_run1(t.eye, "lanes/below", in, note_lane, &found, NULL, &err),
                     SL_OK);
    return found;
}

static int64_t lane_of(int64_t id)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT lane::bigint FROM sluice_outbox WHERE id = %lld",
             (long long)id);
    return testdb_int(&t, sql);
}

/* Message 3 is the first of its lane, 4 is held as all of its lane, and of that of 5 the floor is the first message. */
static void expect_lanes_of_3_to_5(void)
{
    char sql[120];
    int64_t lanes[] = { lane_of(3), lane_of(4), lane_of(5) };
    assert_true(lanes[0] != lanes[1] && lanes[1] != lanes[2] && lanes[0] != lanes[2]);
    snprintf(sql, sizeof sql, "UPDATE sluice_outbox SET held = true WHERE lane = %lld",
             (long long)lanes[1]);
    testdb_exec(&t, sql);
    snprintf(sql, sizeof sql, "SELECT min(id) FROM sluice_outbox WHERE lane = %lld",
             (long long)lanes[2]);
    int64_t first = testdb_int(&t, sql);
    int64_t floors[] = { 4, INT64_MAX, first };
    assert_int_equal(look_below(lanes, floors, 3), UINT64_C(1) << lanes[0]);
    floors[2]++;
    assert_int_equal(look_below(lanes, floors, 3), UINT64_C(1) << lanes[0] | UINT64_C(1)
                                                                                 << lanes[2]);
    assert_int_equal(look_below(lanes + 1, floors + 1, 1), 0);
    assert_int_equal(look_below(lanes, floors, 0), 0);
    floors[0] = floors[1] = floors[2] = 0;
    assert_int_equal(look_below(lanes, floors, 3), 0);
}

/* Keys of which the first messages have lanes of their own. */
static void it_tells_lanes_of_few(void **state)
{
    (void)state;
    fill(10, 20);
    expect_lanes_of_3_to_5();
}

static void it_tells_lanes_of_many(void **state)
{
    (void)state;
    fill(MANY / 20, 20);
    expect_lanes_of_3_to_5();
}

/* ---- Is anything left? ---- */

static bool peek(worker *w)
{
    bool any = true;
    if (strategy->peek(w->claim, &any, &w->err) != SL_OK)
        fail_msg("%s", w->err.text);
    return any;
}

static void behind_blocked_keys(int many)
{
    fill(many, 1);
    testdb_exec(&t, "UPDATE sluice_outbox SET held = (1 = 1)");
    testdb_exec(
        &t, testdb_or(&t,
                      "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) SELECT "
                      "entity_key, lane, "
                      "id, now() + interval '1 h' FROM sluice_outbox ORDER BY id LIMIT 1",
                      "INSERT INTO sluice_outbox_keys (entity_key, lane, head, due_at) SELECT "
                      "entity_key, lane, "
                      "id, datetime('now', '+1 hour') FROM sluice_outbox ORDER BY id LIMIT 1"));
    open_worker(&a);
    assert_false(peek(&a));
    testdb_push(&t, "other", 1);
    assert_true(peek(&a));
    assert_int_equal(take_some(&a, ALL), 1);
    assert_int_equal(worker_settle(&a, SL_SENT, SL_NONE), 0);
    assert_false(peek(&a));
    assert_int_equal(testdb_count(&t), many);
}

static void what_is_left_behind_a_few_that_wait_is_seen(void **state)
{
    (void)state;
    behind_blocked_keys(10);
}

static void what_is_left_behind_many_that_wait_is_seen(void **state)
{
    (void)state;
    behind_blocked_keys(MANY_PEEKED);
}

static void behind_what_others_have(int many)
{
    if (lanes() || strategy == sl_claim_named("advisory"))
        return; /* nobody knows what others have locked; a lane is one owner's */
    fill(many, 1);
    open_worker(&b);
    assert_int_equal(take_some(&b, ALL), many);
    open_worker(&a);
    assert_false(peek(&a));
    testdb_push(&t, "other", 1);
    assert_true(peek(&a));
    assert_int_equal(worker_settle(&b, SL_SENT, SL_NONE), 0);
}

static void what_is_left_behind_a_few_of_others_is_seen(void **state)
{
    (void)state;
    behind_what_others_have(10);
}

static void what_is_left_behind_many_of_others_is_seen(void **state)
{
    (void)state;
    behind_what_others_have(MANY_PEEKED);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static int on(const char *name)
{
    static const char *const ordered[] = { "lanes", "guard", "advisory" };
    const struct CMUnitTest left[] = {
        TEST(what_is_left_behind_a_few_that_wait_is_seen),
        TEST(what_is_left_behind_many_that_wait_is_seen),
        TEST(what_is_left_behind_a_few_of_others_is_seen),
        TEST(what_is_left_behind_many_of_others_is_seen),
    };
    const struct CMUnitTest found[] = {
        TEST(what_appears_below_the_floors_is_found),
        TEST(also_by_a_busy_worker),
        TEST(what_was_found_and_not_read_is_found_again),
    };
    const struct CMUnitTest statement[] = {
        TEST(it_tells_lanes_of_few),
        TEST(it_tells_lanes_of_many),
    };
    int failed = 0;
    dialect = name;
    for (size_t i = 0; i < sizeof ordered / sizeof ordered[0]; i++) {
        char group[64];
        strategy = sl_claim_named(ordered[i]);
        snprintf(group, sizeof group, "%s, %s", name, ordered[i]);
        failed += cmocka_run_group_tests_name(group, left, NULL, NULL);
    }
    strategy = sl_claim_named("lanes");
    failed += cmocka_run_group_tests_name(name, found, NULL, NULL);
    if (!strcmp(name, "postgres"))
        failed += cmocka_run_group_tests_name("the statement", statement, NULL, NULL);
    return failed;
}

int main(void)
{
    return testdb_each(on);
}
