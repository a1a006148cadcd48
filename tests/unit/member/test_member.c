/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that live, on every database: each member is one, with its keeper, a thread that comes from
 * pthread_create in member/member.c. */
#include "unit/member/members.h"

static void one_node_owns_all_at_once(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    int64_t asked_ns = sl_now_ns();
    must_join(&a, &conf);
    int64_t now_ns = sl_now_ns();
    assert_int_equal(owned(a), LANES);
    /* Trusted from before the request on, less a margin. */
    int64_t trusted_ns = sl_lanes_trusted_ns(sl_member_lanes(a));
    assert_true(trusted_ns > asked_ns && trusted_ns < now_ns + conf.lease_ns);
    WAIT_FOR(sl_lanes_trusted_ns(sl_member_lanes(a)) > trusted_ns); /* it beats */
}

static void two_share_and_one_that_leaves_frees_its_part(void **state)
{
    (void)state;
    sl_member_conf one = conf_of("a");
    sl_member_conf two = conf_of("b");
    must_join(&a, &one);
    must_join(&b, &two);
    WAIT_FOR(owned(a) + owned(b) == LANES && owned(b) > 0);
    assert_true(owned(a) > 0);
    sl_member_leave(b);
    b = NULL;
    WAIT_FOR(owned(a) == LANES);
}

static void a_lane_in_use_is_given_up_after_the_turn(void **state)
{
    (void)state;
    sl_member_conf one = conf_of("a");
    sl_member_conf two = conf_of("b");
    sl_lane_uses turn = { 0 };
    must_join(&a, &one);
    sl_lanes_pick(sl_member_lanes(a), 1, &turn);
    assert_int_equal(turn.count, LANES);
    must_join(&b, &two);
    usleep(2500000); /* more than a beat: time enough to do it wrongly */
    assert_int_equal(owned(b), 0);
    sl_lanes_put(sl_member_lanes(a), &turn);
    WAIT_FOR(owned(b) > 0 && owned(a) + owned(b) == LANES);
    free(turn.v);
}

static void a_node_that_was_forgotten_begins_anew(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    sl_lane_uses turn = { 0 };
    must_join(&a, &conf);
    sl_lanes_pick(sl_member_lanes(a), 1, &turn);
    testdb_exec(&t, "DELETE FROM sluice_outbox_nodes");
    WAIT_FOR(!sl_lanes_current(sl_member_lanes(a), turn.generation));
    usleep(300000);
    assert_int_equal(owned(a), 0); /* not beside a turn of its earlier life */
    sl_lanes_put(sl_member_lanes(a), &turn);
    WAIT_FOR(owned(a) == LANES);
    free(turn.v);
}

static void a_name_taken_twice_is_noticed(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    must_join(&a, &conf);
    must_join(&b, &conf);
    WAIT_FOR(failures == 1);
    sl_member_leave(b); /* the younger gave way */
    b = NULL;
    assert_int_equal(owned(a), LANES);
}

static void a_restarted_node_is_not_its_own_rival(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    testdb_exec(&t,
                testdb_or(&t,
                          "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, "
                          "workers, born, lives_until) VALUES (1, 'a', 'lanes', 'ring', 1, 0, "
                          "clock_timestamp() + interval '1 hour')",
                          "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, "
                          "workers, born, lives_until) VALUES (1, 'a', 'lanes', 'ring', 1, 0, "
                          "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour'))"));
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET owner = 1");
    must_join(&a, &conf);
    int64_t trusted_ns = sl_lanes_trusted_ns(sl_member_lanes(a));
    WAIT_FOR(sl_lanes_trusted_ns(sl_member_lanes(a)) > trusted_ns); /* it beats */
    assert_int_equal(owned(a), 0); /* the lease of its earlier life is waited for */
    testdb_exec(&t, "UPDATE sluice_outbox_nodes SET lives_until = '2000-01-01 00:00:00.000' "
                    "WHERE session = 1");
    WAIT_FOR(owned(a) == LANES);
    assert_int_equal(failures, 0);
}

static void wrong_wishes_are_refused(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    conf.lanes = 32;
    assert_int_equal(sl_member_join(&a, &conf, -1, &err), SL_OPERATOR);
    assert_non_null(strstr(err.text, "64 lanes"));
    conf.lanes = 0;
    conf.assign = SL_ASSIGN_STATIC;
    conf.static_lanes = "0-64";
    assert_int_equal(sl_member_join(&a, &conf, -1, &err), SL_REFUSED);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 0);
    conf.static_lanes = "0-3,60";
    must_join(&a, &conf);
    assert_int_equal(owned(a), 5);
}

static void during_a_pause_all_is_given_up(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    must_join(&a, &conf);
    testdb_exec(&t, "UPDATE sluice_outbox_meta SET value = '2999-01-01 00:00:00.000' "
                    "WHERE name = 'lanes_pause'");
    WAIT_FOR(owned(a) == 0);
    testdb_exec(&t, "UPDATE sluice_outbox_meta SET value = '2000-01-01 00:00:00.000' "
                    "WHERE name = 'lanes_pause'");
    WAIT_FOR(owned(a) == LANES);
}

static int on(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_node_owns_all_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(two_share_and_one_that_leaves_frees_its_part, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_lane_in_use_is_given_up_after_the_turn, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_that_was_forgotten_begins_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_taken_twice_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restarted_node_is_not_its_own_rival, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_wishes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(during_a_pause_all_is_given_up, setup, teardown),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
