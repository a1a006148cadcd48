/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that live, on every database: each member is one, with its keeper. */
#include "member/member.h"

#include "core/clock.h"
#include "support/testdb.h"

#include <assert.h>
#include <stdatomic.h>

enum { LANES = 64 };

static const char *dialect;
static testdb t;
static sl_log log_;
static sl_err err;
static sl_member *a, *b;
static _Atomic int failures;

static void quiet(void *ctx, sl_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)line;
}

static int setup(void **state)
{
    (void)state;
    testdb_init(&t, dialect, NULL);
    sl_log_init(&log_, quiet, NULL);
    a = b = NULL;
    failures = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_member_leave(a);
    sl_member_leave(b);
    sl_log_fini(&log_);
    testdb_drop(&t);
    return 0;
}

static sl_rc open_db(void *ctx, sl_db **out, int wake_fd, sl_err *e)
{
    (void)ctx;
    sl_dsn dsn = testdb_dsn(&t);
    dsn.wake_fd = wake_fd;
    return sl_db_open(out, &dsn, e);
}

static void failed(void *ctx, const sl_err *e)
{
    (void)ctx;
    assert(e->rc == SL_OPERATOR);
    failures++;
}

static sl_member_conf conf_of(const char *name)
{
    return (sl_member_conf){ .open = open_db,
                             .failed = failed,
                             .log = &log_,
                             .node = name,
                             .strategy = "lanes",
                             .workers = 2,
                             .lease_ns = 3 * SL_SEC,
                             .own_lanes = true,
                             .assign = SL_ASSIGN_RING };
}

static void must_join(sl_member **m, const sl_member_conf *conf)
{
    if (sl_member_join(m, conf, -1, &err) != SL_OK)
        fail_msg("%s", err.text);
}

static size_t owned(const sl_member *m)
{
    return sl_lanes_owned_count(sl_member_lanes(m));
}

/* Waits until `what` is so. */
#define WAIT_FOR(what)                                                                         \
    for (int64_t until = sl_now_ns() + 60 * SL_SEC; !(what);) {                                \
        if (sl_now_ns() > until)                                                               \
            fail_msg("never: %s", #what);                                                      \
        usleep(5000);                                                                          \
    }

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
    usleep(1500000); /* more than a beat: time enough to do it wrongly */
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
                          "clock_timestamp() + interval '2 seconds')",
                          "INSERT INTO sluice_outbox_nodes (session, node, strategy, assign, "
                          "workers, born, lives_until) VALUES (1, 'a', 'lanes', 'ring', 1, 0, "
                          "strftime('%Y-%m-%d %H:%M:%f', 'now', '+2 seconds'))"));
    testdb_exec(&t, "UPDATE sluice_outbox_lanes SET owner = 1");
    must_join(&a, &conf);
    assert_int_equal(owned(a), 0); /* the lease of its earlier life is waited for */
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
