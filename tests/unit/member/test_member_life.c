/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that live, continued: beats, others, and a database that is away. Their keepers come from
 * pthread_create in member/member.c. */
#include "unit/member/members.h"

/* ---- Beating ---- */

static _Atomic bool gate_is_shut, at_the_gate;

/* The keeper asks for the counts when a beat begins. */
static void stop_at_the_gate(void *ctx, int64_t *sent, int64_t *failed_)
{
    (void)ctx;
    *sent = *failed_ = 0;
    for (; gate_is_shut; usleep(1000))
        at_the_gate = true;
    at_the_gate = false;
}

/* Others count from when the beat was written: who counts from the answer trusts for too long. */
static void the_trust_is_counted_from_before_the_request(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    conf.counts = stop_at_the_gate;
    gate_is_shut = false;
    must_join(&a, &conf);
    sl_lanes *lanes = sl_member_lanes(a);
    gate_is_shut = true;
    WAIT_FOR(at_the_gate);
    testdb_exec(&t, testdb_or(&t, "BEGIN; LOCK TABLE sluice_outbox_nodes", "BEGIN IMMEDIATE"));
    int64_t before_ns = sl_lanes_trusted_ns(lanes);
    gate_is_shut = false;
    assert_true(!t.pg || testdb_waits_for_lock(&t));
    usleep(1000000); /* SQLite does not tell who waits */
    assert_int_equal(sl_lanes_trusted_ns(lanes), before_ns);
    int64_t freed_ns = sl_now_ns();
    testdb_exec(&t, "COMMIT");
    WAIT_FOR(sl_lanes_trusted_ns(lanes) > before_ns);
    int64_t asked_ns = sl_lanes_trusted_ns(lanes) - conf.lease_ns + conf.lease_ns / 10;
    assert_true(asked_ns < freed_ns);
}

static _Atomic int64_t sent_so_far;

static void tell_counts(void *ctx, int64_t *sent, int64_t *failed_)
{
    (void)ctx;
    *sent = sent_so_far;
    *failed_ = 3;
}

static void others_see_what_it_does(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    conf.counts = tell_counts;
    sent_so_far = 0;
    must_join(&a, &conf);
    sent_so_far = 1000;
    WAIT_FOR(testdb_int(&t, "SELECT sent FROM sluice_outbox_nodes") == 1000);
    assert_int_equal(testdb_int(&t, "SELECT failed FROM sluice_outbox_nodes"), 3);
    WAIT_FOR(testdb_int(&t, "SELECT per_second FROM sluice_outbox_nodes") == 0);
}

/* Its row outlives the connection: nothing is lost by that. */
static void a_lost_connection_is_replaced(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    sl_member_conf conf = conf_of("a");
    must_join(&a, &conf);
    sl_lanes *lanes = sl_member_lanes(a);
    int64_t session = testdb_int(&t, "SELECT session FROM sluice_outbox_nodes");
    for (int i = 0; i < 3; i++) {
        int64_t trusted_ns = sl_lanes_trusted_ns(lanes);
        testdb_cut(&t);
        WAIT_FOR(sl_lanes_trusted_ns(lanes) > trusted_ns);
    }
    assert_int_equal(owned(a), LANES);
    assert_int_equal(testdb_int(&t, "SELECT session FROM sluice_outbox_nodes"), session);
    assert_int_equal(failures, 0);
}

/* ---- Others ---- */

static void the_lanes_of_the_dead_are_taken_over(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    int64_t began_ns = sl_now_ns();
    testdb_exec(&t,
                testdb_or(&t,
                          "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, "
                          "workers, born, lives_until) VALUES (1, 'z', 'lanes', 'ring', 1, 0, "
                          "clock_timestamp() + interval '2 seconds')",
                          "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, "
                          "workers, born, lives_until) VALUES (1, 'z', 'lanes', 'ring', 1, 0, "
                          "strftime('%Y-%m-%d %H:%M:%f', 'now', '+2 seconds'))"));
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET owner = 1, epoch = 0");
    must_join(&a, &conf);
    WAIT_FOR(owned(a) == LANES);
    assert_true(sl_now_ns() - began_ns > 1900 * SL_MS); /* not before its time was over */
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes WHERE epoch = 0"),
                     0);
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 1);
}

/* What is to be done about it fails after the list of those that live was read, and is done once more. */
static void a_change_is_not_lost_with_the_connection(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    sl_member_conf one = conf_of("a");
    sl_member_conf two = conf_of("b");
    one.consumes = true;
    must_join(&a, &one);
    must_join(&b, &two);
    WAIT_FOR(owned(a) && owned(b) && owned(a) + owned(b) == LANES);
    testdb_exec(&t, "BEGIN; LOCK TABLE sluice_outbox_consumed");
    sl_member_leave(b);
    b = NULL;
    assert_true(testdb_waits_for_lock(&t));
    testdb_cut(&t);
    testdb_exec(&t, "COMMIT");
    WAIT_FOR(owned(a) == LANES);
    assert_int_equal(failures, 0);
}

/* However they wish: in the end each lane has one owner, and each node its part. */
static void each_way_to_share_comes_to_rest(void **state)
{
    (void)state;
    static const sl_assign ways[] = { SL_ASSIGN_RING, SL_ASSIGN_CLAIM, SL_ASSIGN_BIRTH_ORDER,
                                      SL_ASSIGN_STATIC };
    for (size_t i = 0; i < COUNT(ways); i++) {
        sl_member_conf confs[] = { conf_of("a"), conf_of("b"), conf_of("c") };
        static const char *const parts[] = { "0-9", "10-40", "41-63" };
        sl_member **const members[] = { &a, &b, &c };
        for (size_t k = 0; k < 3; k++) {
            confs[k].assign = ways[i];
            confs[k].static_lanes = ways[i] == SL_ASSIGN_STATIC ? parts[k] : NULL;
            must_join(members[k], &confs[k]);
        }
        WAIT_FOR(owned(a) && owned(b) && owned(c) && owned(a) + owned(b) + owned(c) == LANES);
        assert_true(ways[i] != SL_ASSIGN_STATIC || owned(a) == 10);
        if (ways[i] == SL_ASSIGN_CLAIM)
            WAIT_FOR(owned(a) >= 21 && owned(b) >= 21 && owned(c) >= 21);
        WAIT_FOR(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes l JOIN "
                                "sluice_outbox_nodes n ON n.session = l.owner") == LANES);
        for (size_t k = 0; k < 3; k++) {
            sl_member_leave(*members[k]);
            *members[k] = NULL;
        }
        assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 0);
    }
    assert_int_equal(failures, 0);
}

/* With `claim`: a node gives back what another should have, which has not heard of a third one yet, and takes too much. */
static void whose_share_changes_afterwards_gives_back(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    conf.assign = SL_ASSIGN_CLAIM;
    must_join(&a, &conf);
    WAIT_FOR(owned(a) == LANES);
    testdb_exec(
        &t,
        testdb_or(
            &t,
            "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, workers, born, "
            "lives_until) SELECT i, 'n' || i, 'lanes', 'claim', 1, 0, clock_timestamp() + "
            "interval "
            "'1 h' FROM generate_series(1, 2) i",
            "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, workers, born, "
            "lives_until) SELECT column1, 'n' || column1, 'lanes', 'claim', 1, 0, "
            "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour') FROM (VALUES (1), (2))"));
    WAIT_FOR(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes WHERE owner IS NULL") ==
             42);
    /* In one statement: between two it could see that one of them has too many, and give back for that. */
    testdb_exec(&t,
                "UPDATE sluice_outbox_lanes SET owner = CASE WHEN lane IN (SELECT lane FROM "
                "sluice_outbox_lanes WHERE owner IS NULL ORDER BY lane LIMIT 22) "
                "THEN 1 ELSE 2 END WHERE owner IS NULL");
    WAIT_FOR(owned(a) == 21);
    WAIT_FOR(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_lanes WHERE owner IS NULL") ==
             1);
}

static void another_strategy_is_refused(void **state)
{
    (void)state;
    sl_member_conf one = conf_of("a");
    sl_member_conf two = conf_of("b");
    must_join(&a, &one);
    two.strategy = "guard";
    two.own_lanes = false;
    assert_int_equal(sl_member_join(&b, &two, -1, &err), SL_OPERATOR);
    assert_null(b);
    assert_non_null(strstr(err.text, "node 'a' lives"));
    assert_int_equal(testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes"), 1);
}

/* A strategy that claims keys needs no lanes, and is a node all the same. */
static void a_node_may_own_nothing(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    conf.strategy = "guard";
    conf.own_lanes = false;
    must_join(&a, &conf);
    int64_t trusted_ns = sl_lanes_trusted_ns(sl_member_lanes(a));
    assert_true(trusted_ns > sl_now_ns());
    WAIT_FOR(sl_lanes_trusted_ns(sl_member_lanes(a)) > trusted_ns);
    assert_int_equal(owned(a), 0);
    testdb_expect(&t, "a guard -",
                  "SELECT node || ' ' || strategy || ' ' || CASE assign WHEN '' THEN '-' ELSE "
                  "assign END FROM sluice_outbox_nodes");
}

/* ---- The database is away ---- */

static void at_the_start_it_is_waited_for_if_told_so(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    away = 1;
    assert_int_equal(sl_member_join(&a, &conf, -1, &err), SL_AGAIN);
    assert_null(a);
    away = 1 << 20;
    conf.patient = true;
    must_join(&a, &conf);
    assert_int_equal(sl_lanes_trusted_ns(sl_member_lanes(a)), 0);
    WAIT_FOR(away < (1 << 20) - 2); /* it tries again and again */
    away = 0;
    WAIT_FOR(owned(a) == LANES);
    assert_true(sl_lanes_trusted_ns(sl_member_lanes(a)) > sl_now_ns());
}

static void who_never_reached_it_can_leave(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    away = 1 << 20;
    conf.patient = true;
    must_join(&a, &conf);
    sl_member_leave(a);
    a = NULL;
    sl_member_leave(NULL);
}

static int64_t live_nodes(void)
{
    return testdb_int(&t, "SELECT count(*) FROM sluice_outbox_nodes");
}

/* Joins, and waits for a beat of the keeper, which has a session of its own by then. */
static void must_live(sl_member **m, const sl_member_conf *conf)
{
    must_join(m, conf);
    int64_t trusted_ns = sl_lanes_trusted_ns(sl_member_lanes(*m));
    WAIT_FOR(sl_lanes_trusted_ns(sl_member_lanes(*m)) > trusted_ns);
    WAIT_FOR(owned(*m) == LANES);
}

/* The database went and came back since the last beat: nobody has noticed yet. */
static void who_leaves_over_a_lost_connection_leaves_at_once(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    sl_member_conf conf = conf_of("a");
    must_live(&a, &conf);
    testdb_cut(&t);
    sl_member_leave(a);
    a = NULL;
    assert_int_equal(live_nodes(), 0);
}

/* It was noticed, and the keeper is between two tries when the node ends. */
static void who_leaves_while_it_connects_anew_leaves_at_once(void **state)
{
    (void)state;
    if (!t.pg)
        return;
    sl_member_conf conf = conf_of("a");
    must_live(&a, &conf);
    away = 1 << 20;
    testdb_cut(&t);
    WAIT_FOR(away < (1 << 20) - 4);
    away = 0;
    sl_member_leave(a);
    a = NULL;
    assert_int_equal(live_nodes(), 0);
}

/* What a human has to mend ends the work of a node, not its membership: its workers may still be sending. */
static void who_gives_up_stays_until_it_is_told_to_leave(void **state)
{
    (void)state;
    sl_member_conf conf = conf_of("a");
    must_join(&a, &conf);
    WAIT_FOR(owned(a) == LANES);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_nodes RENAME COLUMN sent TO gone");
    WAIT_FOR(failures == 1);
    testdb_exec(&t, "ALTER TABLE sluice_outbox_nodes RENAME COLUMN gone TO sent");
    assert_int_equal(live_nodes(), 1);
    sl_member_leave(a);
    a = NULL;
    assert_int_equal(failures, 1);
    assert_int_equal(live_nodes(), 0);
}

static int on(const char *name)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_trust_is_counted_from_before_the_request),
        TEST(others_see_what_it_does),
        TEST(a_lost_connection_is_replaced),
        TEST(the_lanes_of_the_dead_are_taken_over),
        TEST(a_change_is_not_lost_with_the_connection),
        TEST(each_way_to_share_comes_to_rest),
        TEST(whose_share_changes_afterwards_gives_back),
        TEST(another_strategy_is_refused),
        TEST(a_node_may_own_nothing),
        TEST(at_the_start_it_is_waited_for_if_told_so),
        TEST(who_never_reached_it_can_leave),
        TEST(who_leaves_over_a_lost_connection_leaves_at_once),
        TEST(who_leaves_while_it_connects_anew_leaves_at_once),
        TEST(who_gives_up_stays_until_it_is_told_to_leave),
    };
    dialect = name;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return testdb_each(on);
}
