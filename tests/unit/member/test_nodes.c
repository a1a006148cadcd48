/* SPDX-License-Identifier: Apache-2.0 */
/* The registry as the database keeps it, on every database. */
#include "member/nodes.h"

#include "core/clock.h"
#include "support/testdb.h"

enum { LANES = 64 };

static const char *dialect;
static testdb t;
static sl_db *db;
static sl_err err;
static sl_node_list list;
static int64_t epochs[LANES];

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, dialect, NULL);
    db = testdb_open(&t);
    memset(epochs, 0, sizeof epochs);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_node_list_fini(&list);
    sl_db_close(db);
    testdb_drop(&t);
    return 0;
}

static sl_node_row node(int64_t session, const char *name)
{
    return (sl_node_row){
        .session = session, .node = name, .strategy = "lanes", .assign = "ring", .workers = 2
    };
}

static void must_join(int64_t session, const char *name)
{
    sl_node_row me = node(session, name);
    if (sl_nodes_join(db, &me, 30 * SL_SEC, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static void end_time_of(int64_t session)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "UPDATE sluice_outbox_nodes SET lives_until = '2000-01-01 00:00:00.000' "
             "WHERE session = %lld",
             (long long)session);
    testdb_exec(&t, sql);
}

static void granted(void *ctx, size_t lane, int64_t epoch)
{
    (*(size_t *)ctx)++;
    epochs[lane] = epoch;
}

static size_t acquire(int64_t session, int64_t from, size_t n)
{
    int64_t lanes[LANES];
    size_t got = 0;
    for (size_t i = 0; i < n; i++)
        lanes[i] = from + (int64_t)i;
    if (sl_lanes_acquire(db, lanes, n, session, granted, &got, &err) != SL_OK)
        fail_msg("%s", err.text);
    return got;
}

static size_t owned_by(int64_t session)
{
    int64_t owners[LANES];
    size_t count = LANES;
    size_t n = 0;
    assert_int_equal(sl_lanes_list(db, owners, &count, &err), SL_OK);
    assert_int_equal(count, LANES);
    for (size_t i = 0; i < LANES; i++)
        n += owners[i] == session;
    return n;
}

static sl_beat beat(int64_t session)
{
    sl_beat b;
    sl_node_row me = node(session, "");
    me.sent = 10;
    me.per_second = 5;
    if (sl_nodes_beat(db, &me, 30 * SL_SEC, &b, &err) != SL_OK)
        fail_msg("%s", err.text);
    return b;
}

static void who_joins_is_listed_in_order(void **state)
{
    (void)state;
    must_join(71, "b");
    must_join(5, "a");
    assert_int_equal(sl_nodes_list(db, &list, &err), SL_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.v[0].node, "b");
    assert_string_equal(list.v[1].node, "a");
    assert_true(list.v[0].born < list.v[1].born);
    assert_string_equal(list.v[1].strategy, "lanes");
    assert_string_equal(list.v[1].assign, "ring");
    assert_int_equal(list.v[1].workers, 2);
    assert_in_range(list.v[1].left_us, 20000000, 30000000);
}

static void another_strategy_is_refused(void **state)
{
    (void)state;
    sl_node_row other = node(2, "b");
    must_join(1, "a");
    other.strategy = "guard";
    assert_int_equal(sl_nodes_join(db, &other, 30 * SL_SEC, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "'a' lives"));
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 1);
    end_time_of(1); /* one that is dead is no reason */
    assert_int_equal(sl_nodes_join(db, &other, 30 * SL_SEC, &err), SL_OK);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 1);
}

static void so_are_leases_of_guard(void **state)
{
    (void)state;
    sl_node_row me = node(1, "a");
    testdb_exec(&t, "INSERT INTO sluice_outbox_claims (claim, epoch, ends_at, holder, held_by) "
                    "VALUES ('kx', 1, '2999-01-01 00:00:00.000', 1, 'p')");
    assert_int_equal(sl_nodes_join(db, &me, SL_SEC, &err), SL_OPERATOR);
    me.strategy = "guard";
    assert_int_equal(sl_nodes_join(db, &me, SL_SEC, &err), SL_OK);
}

static void a_beat_tells_what_has_changed(void **state)
{
    (void)state;
    must_join(1, "a");
    sl_beat one = beat(1);
    assert_true(one.alive);
    assert_int_equal(one.peers, 1);
    assert_int_equal(one.lanes, LANES);
    assert_false(one.paused);
    assert_true(one.soonest_us == INT64_MAX);
    must_join(2, "b");
    sl_beat two = beat(1);
    assert_int_equal(two.peers, 2);
    assert_true(two.last_born > one.last_born);
    assert_in_range(two.soonest_us, 20000000, 30000000);
    end_time_of(2);
    assert_true(beat(1).soonest_us <= 0);
    assert_int_equal(testdb_int(&t, "SELECT sent FROM sluice_outbox_nodes WHERE session = 1"),
                     10);
}

static void the_dead_are_pruned_and_learn_it(void **state)
{
    (void)state;
    size_t n = 9;
    must_join(1, "a");
    must_join(2, "b");
    assert_int_equal(acquire(2, 0, LANES), LANES);
    end_time_of(2);
    assert_true(beat(2).alive); /* late, but nobody has taken over */
    assert_int_equal(owned_by(2), LANES);
    end_time_of(2);
    assert_int_equal(sl_nodes_prune(db, &n, &err), SL_OK);
    assert_int_equal(n, 1);
    assert_false(beat(2).alive);
    assert_int_equal(owned_by(2), 0);
    assert_int_equal(acquire(1, 0, LANES), LANES);
}

static void who_lives_keeps_its_lanes(void **state)
{
    (void)state;
    must_join(1, "a");
    must_join(2, "b");
    assert_int_equal(acquire(1, 0, 40), 40);
    assert_int_equal(acquire(2, 0, LANES), LANES - 40);
    assert_int_equal(owned_by(1), 40);
    end_time_of(1); /* not pruned: still its own */
    assert_int_equal(acquire(2, 0, 40), 0);
}

static void each_owner_has_a_larger_epoch(void **state)
{
    (void)state;
    int64_t lanes[] = { 0, 1, 2 };
    int64_t last = 0;
    must_join(1, "a");
    must_join(2, "b");
    for (int64_t i = 0; i < 6; i++) {
        int64_t who = 1 + i % 2;
        assert_int_equal(acquire(who, 0, 3), 3);
        assert_true(epochs[0] > last);
        last = epochs[0];
        assert_int_equal(sl_lanes_release(db, lanes, 3, 3 - who, &err), SL_OK); /* not its */
        assert_int_equal(owned_by(who), 3);
        assert_int_equal(sl_lanes_release(db, lanes, 3, who, &err), SL_OK);
        assert_int_equal(owned_by(0), LANES);
    }
}

static void only_nodes_own_lanes_and_none_during_a_pause(void **state)
{
    (void)state;
    assert_int_equal(acquire(1, 0, LANES), 0); /* not registered */
    must_join(1, "a");
    testdb_exec(&t, "UPDATE sluice_outbox_meta SET value = '2999-01-01 00:00:00.000' "
                    "WHERE name = 'lanes_pause'");
    assert_true(beat(1).paused);
    assert_int_equal(acquire(1, 0, LANES), 0);
}

static void who_leaves_frees_its_lanes_at_once(void **state)
{
    (void)state;
    must_join(1, "a");
    assert_int_equal(acquire(1, 0, LANES), LANES);
    assert_int_equal(sl_nodes_leave(db, 1, &err), SL_OK);
    assert_int_equal(sl_nodes_leave(db, 1, &err), SL_OK); /* harmless */
    assert_int_equal(owned_by(0), LANES);
}

static int on(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_joins_is_listed_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(another_strategy_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(so_are_leases_of_guard, setup, teardown),
        cmocka_unit_test_setup_teardown(a_beat_tells_what_has_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_dead_are_pruned_and_learn_it, setup, teardown),
        cmocka_unit_test_setup_teardown(who_lives_keeps_its_lanes, setup, teardown),
        cmocka_unit_test_setup_teardown(each_owner_has_a_larger_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(only_nodes_own_lanes_and_none_during_a_pause, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_leaves_frees_its_lanes_at_once, setup, teardown),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
