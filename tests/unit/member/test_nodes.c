/* SPDX-License-Identifier: Apache-2.0 */
#include "member/nodes.h"

#include "unit/member/registry.h"

static sl_node_list list;

static int teardown(void **state)
{
    (void)state;
    sl_node_list_fini(&list);
    drop_registry();
    return 0;
}

static sl_rc join_as(int64_t session, const char *node, const char *strategy)
{
    sl_node_row me = {
        .session = session, .node = node, .strategy = strategy, .assign = "ring", .workers = 4
    };
    return sl_nodes_join(db, &me, 10 * SL_SEC, NULL, &err);
}

static void join(int64_t session)
{
    char name[16];
    snprintf(name, sizeof name, "n%lld", (long long)session);
    must(join_as(session, name, "lanes"));
}

static sl_beat beat(int64_t session)
{
    sl_beat b;
    must(sl_nodes_beat(db, &(sl_node_row){ .session = session }, 10 * SL_SEC, &b, &err));
    return b;
}

/* As if its time were over. */
static void expire(int64_t session)
{
    char sql[128];
    snprintf(sql, sizeof sql,
             "UPDATE sluice_outbox_nodes SET lives_until = '2000-01-01 00:00:00.000' WHERE "
             "session = %lld",
             (long long)session);
    testdb_exec(&t, sql);
}

/* ---- Nodes ---- */

static void a_node_is_seen_by_others(void **state)
{
    (void)state;
    must(join_as(11, "a", "lanes"));
    must(join_as(12, "b", "lanes"));
    must(sl_nodes_list(db, &list, &err));
    assert_int_equal(list.count, 2);
    assert_int_equal(list.v[0].session, 11);
    assert_string_equal(list.v[0].node, "a");
    assert_string_equal(list.v[0].strategy, "lanes");
    assert_string_equal(list.v[0].assign, "ring");
    assert_int_equal(list.v[0].workers, 4);
    assert_in_range(list.v[0].left_us, 1000000, 10001000);
    assert_in_range(list.v[0].age_us + 1000, 0, 60000000);
    assert_true(list.v[1].born > list.v[0].born); /* in the order of their births */
    must(sl_nodes_list(db, &list, &err));         /* begins anew */
    assert_int_equal(list.count, 2);
}

static void a_list_of_many_is_whole(void **state)
{
    (void)state;
    for (int64_t i = 1; i <= 40; i++)
        join(i);
    must(sl_nodes_list(db, &list, &err));
    assert_int_equal(list.count, 40);
    for (int64_t i = 1; i <= 40; i++)
        assert_int_equal(list.v[i - 1].session, i);
}

static void a_beat_tells_of_changes(void **state)
{
    (void)state;
    join(1);
    sl_beat alone = beat(1);
    assert_true(alone.alive);
    assert_int_equal(alone.peers, 1);
    assert_int_equal(alone.lanes, LANES);
    assert_false(alone.paused);
    assert_int_equal(alone.soonest_us, INT64_MAX); /* there is no other */
    join(2);
    sl_beat two = beat(1);
    assert_int_equal(two.peers, 2);
    assert_true(two.last_born > alone.last_born);
    assert_in_range(two.soonest_us, 1000000, 10001000);
    must(sl_nodes_leave(db, 2, &err));
    join(3); /* one for another: the number alone would not tell */
    sl_beat again = beat(1);
    assert_int_equal(again.peers, 2);
    assert_true(again.last_born > two.last_born);
    expire(3);
    assert_true(beat(1).soonest_us <= 0);
}

static void a_beat_writes_what_others_may_see(void **state)
{
    (void)state;
    sl_beat b;
    join(1);
    sl_node_row me = { .session = 1, .sent = 5, .failed = 6, .per_second = 7 };
    must(sl_nodes_beat(db, &me, 20 * SL_SEC, &b, &err));
    must(sl_nodes_list(db, &list, &err));
    assert_int_equal(list.v[0].sent, 5);
    assert_int_equal(list.v[0].failed, 6);
    assert_int_equal(list.v[0].per_second, 7);
    assert_in_range(list.v[0].left_us, 11000000, 20001000); /* and it lives on */
}

static void the_pruned_learn_it_at_their_next_beat(void **state)
{
    (void)state;
    size_t pruned = 99;
    join(1);
    join(2);
    must(sl_nodes_prune(db, &pruned, &err));
    assert_int_equal(pruned, 0);
    expire(1);
    assert_true(beat(1).alive); /* late, but nobody had come */
    must(sl_nodes_prune(db, &pruned, &err));
    assert_int_equal(pruned, 0);
    expire(1);
    must(sl_nodes_prune(db, &pruned, &err));
    assert_int_equal(pruned, 1);
    assert_false(beat(1).alive);
    assert_int_equal(beat(2).peers, 1);
}

static void who_joins_prunes_first(void **state)
{
    (void)state;
    must(join_as(1, "a", "guard"));
    expire(1);
    must(join_as(2, "b", "lanes")); /* the other strategy is dead */
    must(sl_nodes_list(db, &list, &err));
    assert_int_equal(list.count, 1);
}

static void leaving_twice_is_harmless(void **state)
{
    (void)state;
    join(1);
    must(sl_nodes_leave(db, 1, &err));
    must(sl_nodes_leave(db, 1, &err));
    assert_false(beat(1).alive);
}

static void another_strategy_is_refused(void **state)
{
    (void)state;
    must(join_as(1, "first", "guard"));
    assert_int_equal(join_as(2, "second", "lanes"), SL_OPERATOR);
    assert_non_null(strstr(err.text, "node 'first' lives and shares this table by strategy "
                                     "guard, not lanes"));
    assert_non_null(strstr(err.text, "\nhint: "));
    must(join_as(3, "third", "guard"));
    must(sl_nodes_list(db, &list, &err));
    assert_int_equal(list.count, 2);
}

/* Of a guard that is gone, keys may still be leased: those who do not look at that have to wait. */
static void leased_keys_keep_others_away(void **state)
{
    (void)state;
    testdb_exec(&t, testdb_or(&t,
                              "INSERT INTO sluice_outbox_claims VALUES (1, now() + "
                              "interval '1 hour', 1, 'n/1', '{kx}')",
                              "INSERT INTO sluice_outbox_claims VALUES ('kx', 1, "
                              "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour'), 1, 'n/1')"));
    assert_int_equal(join_as(1, "a", "lanes"), SL_OPERATOR);
    assert_non_null(strstr(err.text, "keys are still leased, "));
    assert_int_equal(join_as(1, "a", "advisory"), SL_OPERATOR);
    must(join_as(2, "b", "guard"));
    must(sl_nodes_leave(db, 2, &err));
    testdb_exec(&t, "UPDATE sluice_outbox_claims SET ends_at = '2000-01-01 00:00:00.000'");
    must(join_as(3, "c", "lanes"));
}

/* On SQLite a node of advisory leaves some, too, for which the next one looks. */
static void keys_of_advisory_keep_others_away(void **state)
{
    (void)state;
    if (strcmp(db->ops->name, "sqlite") != 0)
        return;
    testdb_exec(&t, "INSERT INTO sluice_outbox_claims VALUES ('kx', 1, "
                    "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour'), 0, 'n/1')");
    assert_int_equal(join_as(1, "a", "lanes"), SL_OPERATOR);
    assert_int_equal(join_as(1, "a", "skip-locked"), SL_OPERATOR);
    must(join_as(2, "b", "advisory"));
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_claims"), 1);
}

/* ---- Lanes ---- */

typedef struct grants {
    size_t n;
    int64_t epoch_of[LANES];
} grants;

static void note(void *ctx, size_t lane, int64_t epoch, int64_t floor)
{
    (void)floor;
    grants *g = ctx;
    assert_true(lane < LANES && epoch > 0);
    g->epoch_of[lane] = epoch;
    g->n++;
}

static grants acquire(int64_t session, size_t first, size_t end)
{
    int64_t lanes[LANES];
    grants g = { .n = 0 };
    for (size_t i = first; i < end; i++)
        lanes[i - first] = (int64_t)i;
    must(sl_lanes_acquire(db, lanes, end - first, session, note, &g, &err));
    return g;
}

static void expect_owners(const char *text)
{
    int64_t owners[LANES];
    char got[LANES * 4] = "";
    size_t count = LANES;
    must(sl_lanes_list(db, owners, &count, &err));
    assert_int_equal(count, LANES);
    for (size_t i = 0; i < LANES; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%lld", (long long)owners[i]);
    assert_string_equal(got, text);
}

static void free_lanes_are_gained_once(void **state)
{
    (void)state;
    join(1);
    join(2);
    expect_owners("00000000");
    assert_int_equal(acquire(1, 0, 5).n, 5);
    grants second = acquire(2, 3, LANES); /* 3 and 4 are taken */
    assert_int_equal(second.n, 3);
    assert_int_equal(second.epoch_of[4], 0);
    expect_owners("11111222");
    assert_int_equal(acquire(2, 0, 0).n, 0);
}

/* Late, but not pruned: others must not take what is still its own. */
static void lanes_are_free_only_when_their_owner_is_gone(void **state)
{
    (void)state;
    size_t pruned;
    join(1);
    join(2);
    acquire(1, 0, LANES);
    expire(1);
    assert_int_equal(acquire(2, 0, LANES).n, 0);
    assert_true(beat(1).alive);
    expire(1);
    must(sl_nodes_prune(db, &pruned, &err));
    expect_owners("00000000");
    assert_int_equal(acquire(2, 0, LANES).n, LANES);
}

static void a_node_that_does_not_live_gains_nothing(void **state)
{
    (void)state;
    assert_int_equal(acquire(1, 0, LANES).n, 0);
    expect_owners("00000000");
}

static void epochs_grow_with_each_owner(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int64_t session = 1; session <= 5; session++) {
        join(session);
        grants g = acquire(session, 0, LANES);
        assert_int_equal(g.n, LANES);
        for (size_t i = 0; i < LANES; i++)
            assert_true(g.epoch_of[i] > last);
        last = g.epoch_of[LANES - 1];
        must(sl_nodes_leave(db, session, &err)); /* which frees them */
        expect_owners("00000000");
    }
}

/* The answer may have been lost: asking again tells, with an epoch that nobody has seen. */
static void ones_own_are_granted_again(void **state)
{
    (void)state;
    join(1);
    grants first = acquire(1, 0, 2);
    grants again = acquire(1, 0, 2);
    assert_int_equal(again.n, 2);
    assert_true(again.epoch_of[0] >= first.epoch_of[0]);
}

static void lanes_are_released_by_their_owner_only(void **state)
{
    (void)state;
    int64_t all[LANES] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    join(1);
    join(2);
    acquire(1, 0, 4);
    acquire(2, 4, LANES);
    must(sl_lanes_release(db, all, LANES, 1, &err));
    expect_owners("00002222");
    must(sl_lanes_release(db, all, 1, 2, &err)); /* lane 0 is not its own */
    must(sl_lanes_release(db, all + 7, 1, 2, &err));
    expect_owners("00002220");
    must(sl_lanes_release(db, all, 0, 2, &err));
    expect_owners("00002220");
}

static void nobody_gains_while_lanes_are_paused(void **state)
{
    (void)state;
    join(1);
    testdb_exec(&t, testdb_or(&t,
                              "UPDATE sluice_outbox_meta SET value = 'infinity' WHERE name = "
                              "'lanes_pause'",
                              "UPDATE sluice_outbox_meta SET value = '9999-12-31 00:00:00.000' "
                              "WHERE name = 'lanes_pause'"));
    assert_true(beat(1).paused);
    assert_int_equal(acquire(1, 0, LANES).n, 0);
    testdb_exec(&t,
                "UPDATE sluice_outbox_meta SET value = '2000-01-01 00:00:00.000' WHERE name "
                "= 'lanes_pause'");
    assert_false(beat(1).paused);
    assert_int_equal(acquire(1, 0, LANES).n, LANES);
}

/* As after `sluice lanes --set`: what the caller has no room for is counted only. */
static void a_list_of_more_lanes_than_expected_is_cut(void **state)
{
    (void)state;
    int64_t owners[4] = { -1, -1, -1, -1 };
    size_t count = 3;
    must(sl_lanes_list(db, owners, &count, &err));
    assert_int_equal(count, LANES);
    assert_int_equal(owners[2], 0);
    assert_int_equal(owners[3], -1);
}

/* ---- When the database fails ---- */

static void failures_are_passed_on(void **state)
{
    (void)state;
    sl_beat b;
    size_t n = 1;
    int64_t lane = 0;
    grants g = { .n = 0 };
    join(7);
    must(sl_nodes_list(db, &list, &err));
    testdb_exec(&t, "DROP TABLE sluice_outbox_nodes");
    assert_int_equal(join_as(1, "a", "lanes"), SL_OPERATOR);
    assert_int_equal(sl_nodes_list(db, &list, &err), SL_OPERATOR);
    assert_int_equal(list.count,
                     1); /* else it would look as if nobody lived, and all lanes be given up */
    assert_int_equal(sl_nodes_leave(db, 1, &err), SL_OPERATOR);
    assert_int_equal(sl_nodes_prune(db, &n, &err), SL_OPERATOR);
    assert_int_equal(sl_nodes_beat(db, &(sl_node_row){ .session = 1 }, SL_SEC, &b, &err),
                     SL_OPERATOR);
    assert_false(b.alive);
    assert_int_equal(sl_lanes_acquire(db, &lane, 1, 1, note, &g, &err), SL_OPERATOR);
    assert_int_equal(g.n, 0);
}

static int on(const char *name)
{
    dialect = name;
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_node_is_seen_by_others),
        TEST(a_list_of_many_is_whole),
        TEST(a_beat_tells_of_changes),
        TEST(a_beat_writes_what_others_may_see),
        TEST(the_pruned_learn_it_at_their_next_beat),
        TEST(who_joins_prunes_first),
        TEST(leaving_twice_is_harmless),
        TEST(another_strategy_is_refused),
        TEST(leased_keys_keep_others_away),
        TEST(keys_of_advisory_keep_others_away),
        TEST(free_lanes_are_gained_once),
        TEST(lanes_are_free_only_when_their_owner_is_gone),
        TEST(a_node_that_does_not_live_gains_nothing),
        TEST(epochs_grow_with_each_owner),
        TEST(ones_own_are_granted_again),
        TEST(lanes_are_released_by_their_owner_only),
        TEST(nobody_gains_while_lanes_are_paused),
        TEST(a_list_of_more_lanes_than_expected_is_cut),
        TEST(failures_are_passed_on),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
