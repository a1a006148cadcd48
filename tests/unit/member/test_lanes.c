/* SPDX-License-Identifier: Apache-2.0 */
#include "member/lanes.h"

#include "unit/unit.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LANES = 16 };

static sl_lanes *l;
static sl_lane_uses a, b;

static int setup(void **state)
{
    (void)state;
    l = sl_lanes_new();
    sl_lanes_void(l, LANES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_lanes_free(l);
    free(a.v);
    free(b.v);
    a = b = (sl_lane_uses){ 0 };
    return 0;
}

static void grant_all(int64_t epoch)
{
    for (size_t i = 0; i < LANES; i++)
        sl_lanes_grant(l, i, epoch, 0);
}

static bool rings(void)
{
    struct pollfd fd = { .fd = sl_lanes_fd(l), .events = POLLIN };
    return poll(&fd, 1, 0) == 1;
}

static bool picked(const sl_lane_uses *u, int64_t lane)
{
    for (size_t i = 0; i < u->count; i++)
        if (u->v[i].lane == lane)
            return true;
    return false;
}

static void nothing_is_owned_at_first(void **state)
{
    (void)state;
    sl_lanes_pick(l, 1, &a);
    assert_int_equal(a.count, 0);
    sl_lanes_put(l, &a);
    assert_int_equal(sl_lanes_count(l), LANES);
    assert_int_equal(sl_lanes_owned_count(l), 0);
}

static void one_worker_gets_all_with_their_epochs(void **state)
{
    (void)state;
    grant_all(7);
    sl_lanes_pick(l, 1, &a);
    assert_int_equal(a.count, LANES);
    for (size_t i = 0; i < LANES; i++)
        assert_int_equal(a.v[i].epoch, 7);
}

static void a_lane_is_used_by_one_worker_at_a_time(void **state)
{
    (void)state;
    grant_all(7);
    sl_lanes_pick(l, 2, &a);
    sl_lanes_pick(l, 2, &b);
    assert_int_equal(a.count, LANES / 2);
    assert_int_equal(b.count, LANES / 2);
    for (size_t i = 0; i < a.count; i++)
        assert_false(picked(&b, a.v[i].lane));
}

/* A turn that goes on keeps what it has, and gets what has become free beside it. */
static void a_turn_that_goes_on_picks_more(void **state)
{
    (void)state;
    grant_all(7);
    sl_lanes_pick(l, 2, &a);
    int64_t first = a.v[0].lane;
    int64_t last = a.v[a.count - 1].lane;
    sl_lanes_put_early(l, a.generation, &a.v[a.count - 1], 1);
    a.count--;
    sl_lanes_pick_more(l, 2, &a);
    assert_int_equal(a.count, LANES / 2);
    assert_int_equal(a.v[0].lane, first);
    sl_lanes_pick(l, 2, &b);
    for (size_t i = 0; i < a.count; i++)
        assert_false(picked(&b, a.v[i].lane));
    assert_true(picked(&b, last) || picked(&a, last));
    sl_lanes_put(l, &b);
    sl_lanes_put(l, &a);
    sl_lanes_void(l, LANES); /* each turn has ended once */
    assert_int_equal(sl_lanes_stale(l), 0);
}

static void a_turn_that_goes_on_keeps_to_its_part(void **state)
{
    (void)state;
    grant_all(7);
    sl_lanes_pick(l, 1, &a);
    sl_lanes_pick_more(l, 4, &a);
    assert_int_equal(a.count, LANES);
}

static void after_a_void_a_turn_gets_no_more(void **state)
{
    (void)state;
    grant_all(7);
    sl_lanes_pick(l, 4, &a);
    size_t had = a.count;
    sl_lanes_void(l, LANES);
    grant_all(8);
    sl_lanes_pick_more(l, 1, &a);
    assert_int_equal(a.count, had);
    sl_lanes_put(l, &a);
    assert_int_equal(sl_lanes_stale(l), 0);
}

static void what_is_put_back_is_remembered(void **state)
{
    (void)state;
    sl_lanes_grant(l, 3, 7, 0);
    sl_lanes_pick(l, 1, &a);
    assert_int_equal(a.count, 1);
    a.v[0].floor.at = 1000;
    a.v[0].hungry = true;
    sl_lanes_put(l, &a);
    sl_lanes_pick(l, 1, &b);
    assert_int_equal(b.v[0].lane, 3);
    assert_int_equal(b.v[0].floor.at, 1000);
    assert_true(b.v[0].hungry);
}

/* However many lanes always have more, each of the others is picked now and then. */
static void quiet_lanes_do_not_starve(void **state)
{
    (void)state;
    bool seen[LANES] = { false };
    grant_all(7);
    for (int turn = 0; turn < 4 * LANES; turn++) {
        sl_lanes_pick(l, 4, &a);
        for (size_t i = 0; i < a.count; i++) {
            seen[a.v[i].lane] = true;
            a.v[i].hungry = a.v[i].lane < LANES - 2;
        }
        sl_lanes_put(l, &a);
    }
    for (size_t i = 0; i < LANES; i++)
        assert_true(seen[i]);
    memset(seen, 0, sizeof seen); /* now that they are known as hungry or not */
    for (int turn = 0; turn < 4 * LANES; turn++) {
        sl_lanes_pick(l, 4, &a);
        for (size_t i = 0; i < a.count; i++)
            seen[a.v[i].lane] = true;
        sl_lanes_put(l, &a);
    }
    assert_true(seen[LANES - 1] && seen[LANES - 2]);
}

/* More lanes than one turn uses, and all of them always have more: they take turns. */
static void hungry_lanes_do_not_starve_each_other(void **state)
{
    (void)state;
    enum { MANY = 1024 };
    static bool seen[MANY];
    memset(seen, 0, sizeof seen);
    sl_lanes_void(l, MANY);
    for (size_t i = 0; i < MANY; i++)
        sl_lanes_grant(l, i, 7, 0);
    for (int turn = 0; turn < 200; turn++) {
        if (turn == 100)
            memset(seen, 0, sizeof seen); /* by now all are known as hungry */
        sl_lanes_pick(l, 1, &a);
        assert_true(a.count < MANY);
        for (size_t i = 0; i < a.count; i++) {
            seen[a.v[i].lane] = true;
            a.v[i].hungry = true;
        }
        sl_lanes_put(l, &a);
    }
    for (size_t i = 0; i < MANY; i++)
        assert_true(seen[i]);
}

static void a_lane_leaves_only_when_nobody_uses_it(void **state)
{
    (void)state;
    int64_t left[LANES];
    bool wish[LANES] = { [1] = true };
    sl_lanes_grant(l, 0, 7, 0);
    sl_lanes_grant(l, 1, 7, 0);
    sl_lanes_grant(l, 2, 7, 0);
    sl_lanes_pick(l, 1, &a);
    sl_lanes_wish(l, wish);
    assert_int_equal(sl_lanes_left(l, left), 0); /* in use */
    assert_false(rings());
    sl_lanes_put(l, &a);
    assert_true(rings());
    assert_int_equal(sl_lanes_left(l, left), 2);
    assert_int_equal(left[0], 0);
    assert_int_equal(left[1], 2);
    assert_false(rings());
    assert_false(sl_lanes_owned(l, 0));
    assert_true(sl_lanes_owned(l, 1));
    sl_lanes_pick(l, 1, &b);
    assert_int_equal(b.count, 1);
}

static void a_leaving_lane_is_not_picked_and_may_be_wished_again(void **state)
{
    (void)state;
    bool none[LANES] = { false };
    bool wish[LANES] = { [5] = true };
    sl_lanes_grant(l, 5, 7, 0);
    sl_lanes_wish(l, none);
    sl_lanes_pick(l, 1, &a);
    assert_int_equal(a.count, 0);
    sl_lanes_put(l, &a);
    sl_lanes_wish(l, wish);
    sl_lanes_pick(l, 1, &a);
    assert_int_equal(a.count, 1);
}

static void a_void_makes_turns_stale(void **state)
{
    (void)state;
    grant_all(7);
    sl_lanes_pick(l, 1, &a);
    assert_true(sl_lanes_current(l, a.generation));
    sl_lanes_void(l, 2 * LANES);
    assert_false(sl_lanes_current(l, a.generation));
    assert_int_equal(sl_lanes_owned_count(l), 0);
    assert_int_equal(sl_lanes_stale(l), 1);
    sl_lanes_grant(l, 0, 9, 0);
    sl_lanes_put(l, &a); /* does not touch what is new */
    assert_int_equal(sl_lanes_stale(l), 0);
    assert_true(rings());
    sl_lanes_pick(l, 1, &b);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.v[0].epoch, 9);
    assert_int_equal(b.v[0].floor.at, 0);
}

/* Nothing is picked until they are granted anew, and what was picked before ends first. */
static void in_doubt_nothing_is_picked(void **state)
{
    int64_t left[LANES];
    (void)state;
    grant_all(7);
    sl_lanes_pick(l, 2, &a);
    assert_false(sl_lanes_doubted(l));
    assert_false(rings());
    sl_lanes_doubt(l);
    assert_true(rings());
    assert_int_equal(sl_lanes_left(l, left), 0);
    sl_lanes_pick(l, 2, &b);
    assert_int_equal(b.count, 0);
    assert_false(sl_lanes_doubted(l)); /* not yet */
    sl_lanes_put(l, &a);
    assert_true(rings());
    assert_int_equal(sl_lanes_left(l, left), 0);
    assert_true(sl_lanes_doubted(l)); /* who has picked nothing is not waited for */
    sl_lanes_put(l, &b);
    assert_false(rings());
    sl_lanes_void(l, LANES);
    assert_false(sl_lanes_doubted(l));
    assert_int_equal(sl_lanes_stale(l), 0);
    grant_all(8);
    sl_lanes_pick(l, 1, &a);
    assert_int_equal(a.count, LANES);
}

static void the_trust_is_told(void **state)
{
    (void)state;
    assert_int_equal(sl_lanes_trusted_ns(l), 0);
    sl_lanes_trust(l, 123);
    assert_int_equal(sl_lanes_trusted_ns(l), 123);
}

static void grant_twice(void)
{
    sl_lanes_grant(l, 0, 7, 0);
    sl_lanes_grant(l, 0, 8, 0);
}

static void the_peers_are_told(void **state)
{
    (void)state;
    assert_int_equal(sl_lanes_peers(l), 1); /* itself, before anything is known */
    sl_lanes_meet(l, 4);
    assert_int_equal(sl_lanes_peers(l), 4);
}

static void a_lane_is_granted_once(void **state)
{
    (void)state;
    assert_true(aborts(grant_twice));
}

/* ---- Many workers and a keeper ---- */

static _Atomic int users[LANES];
static _Atomic bool over;
static _Atomic long turns;

static void *work(void *arg)
{
    (void)arg;
    sl_lane_uses mine = { 0 };
    while (!over) {
        sl_lanes_pick(l, 4, &mine);
        for (size_t i = 0; i < mine.count; i++)
            assert(atomic_fetch_add(&users[mine.v[i].lane], 1) == 0);
        turns++;
        for (size_t i = 0; i < mine.count; i++)
            users[mine.v[i].lane]--;
        sl_lanes_put(l, &mine);
    }
    free(mine.v);
    return NULL;
}

static void no_two_workers_ever_share_a_lane(void **state)
{
    (void)state;
    pthread_t threads[4];
    int64_t left[LANES];
    grant_all(1);
    over = false;
    turns = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int64_t round = 2; turns < 2000 || round < 50; round++) {
        bool wish[LANES];
        for (size_t i = 0; i < LANES; i++)
            wish[i] = (i + (size_t)round) % 3 != 0;
        sl_lanes_wish(l, wish);
        size_t n = sl_lanes_left(l, left);
        for (size_t i = 0; i < n; i++)
            sl_lanes_grant(l, (size_t)left[i], round, 0);
    }
    over = true;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(turns >= 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_owned_at_first, setup, teardown),
        cmocka_unit_test_setup_teardown(one_worker_gets_all_with_their_epochs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lane_is_used_by_one_worker_at_a_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_turn_that_goes_on_picks_more, setup, teardown),
        cmocka_unit_test_setup_teardown(a_turn_that_goes_on_keeps_to_its_part, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_void_a_turn_gets_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_put_back_is_remembered, setup, teardown),
        cmocka_unit_test_setup_teardown(quiet_lanes_do_not_starve, setup, teardown),
        cmocka_unit_test_setup_teardown(hungry_lanes_do_not_starve_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lane_leaves_only_when_nobody_uses_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_leaving_lane_is_not_picked_and_may_be_wished_again,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_void_makes_turns_stale, setup, teardown),
        cmocka_unit_test_setup_teardown(in_doubt_nothing_is_picked, setup, teardown),
        cmocka_unit_test_setup_teardown(the_trust_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_peers_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lane_is_granted_once, setup, teardown),
        cmocka_unit_test_setup_teardown(no_two_workers_ever_share_a_lane, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
