/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/idle.h"

#include "core/clock.h"
#include "unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>

enum { WORKERS = 4 };

static sl_idle *idlers;
static sl_stop stop;
static _Atomic int begun, woken;

static int setup(void **state)
{
    (void)state;
    idlers = sl_idle_new(WORKERS);
    begun = woken = 0;
    return idlers && sl_stop_init(&stop) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_idle_free(idlers);
    sl_stop_fini(&stop);
    return 0;
}

static void one_watches_at_a_time(void **state)
{
    (void)state;
    assert_true(sl_idle_watch(idlers));
    assert_false(sl_idle_watch(idlers));
    assert_false(sl_idle_watch(idlers));
    sl_idle_ring(idlers); /* that also lets go of the watch */
    assert_true(sl_idle_watch(idlers));
}

static void *sleeper(void *at)
{
    begun++;
    sl_idle_sleep(idlers, (size_t)(uintptr_t)at, &stop);
    woken++;
    return NULL;
}

static void sleep_all(pthread_t threads[WORKERS])
{
    assert_true(sl_idle_watch(idlers));
    for (size_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleeper, (void *)i), 0);
}

static void join_all(pthread_t threads[WORKERS])
{
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(woken, WORKERS);
}

static void the_bell_wakes_all(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    sleep_all(threads);
    sl_idle_ring(idlers);
    join_all(threads);
}

static void a_bell_that_rang_before_the_sleep_is_heard(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    sleep_all(threads);
    sl_idle_ring(idlers);
    sl_idle_ring(idlers);
    join_all(threads);
}

static void it_rings_once_for_each_sleep(void **state)
{
    (void)state;
    sl_idle_ring(idlers);
    assert_true(sl_idle_watch(idlers));
    sl_idle_sleep(idlers, 0, &stop);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, sleeper, (void *)0), 0);
    usleep(20000);
    assert_int_equal(woken, 0); /* the ring before was used up */
    sl_idle_ring(idlers);
    pthread_join(thread, NULL);
    assert_int_equal(woken, 1);
}

/* Then somebody has to look. */
static void nobody_sleeps_while_nobody_watches(void **state)
{
    (void)state;
    sl_idle_sleep(idlers, 0, &stop);
    assert_true(sl_idle_watch(idlers));
    sl_idle_hand_over(idlers);
    sl_idle_sleep(idlers, 0, &stop);
}

static void wait_woken(int n)
{
    int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
    while (woken < n && sl_now_ns() < until_ns)
        usleep(1000);
    assert_int_equal(woken, n);
}

static void a_call_wakes_one(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    sleep_all(threads);
    for (int n = 1; n <= WORKERS; n++) {
        int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
        while (woken < n && sl_now_ns() < until_ns) { /* it may not have lain down yet */
            sl_idle_call(idlers);
            usleep(2000);
        }
    }
    sl_idle_call(idlers); /* nobody is left */
    join_all(threads);
}

/* The watch is free, and one who slept may take it. */
static void the_watch_is_handed_over(void **state)
{
    (void)state;
    pthread_t thread;
    assert_true(sl_idle_watch(idlers));
    assert_int_equal(pthread_create(&thread, NULL, sleeper, (void *)2), 0);
    sl_idle_hand_over(idlers);
    wait_woken(1);
    pthread_join(thread, NULL);
    assert_true(sl_idle_watch(idlers));
}

/* It found something: now the next one stands by. While somebody watches, nobody needs to. */
static void who_stands_in_passes_it_on(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    sleep_all(threads);
    sl_idle_pass_on(idlers);
    while (begun < WORKERS)
        usleep(1000);
    sl_idle_hand_over(idlers);
    for (int n = 1; n <= WORKERS; n++) {
        int64_t until_ns = sl_now_ns() + 20 * SL_SEC;
        while (woken < n && sl_now_ns() < until_ns)
            usleep(1000);
        assert_true(woken >= n); /* more: who had not lain down yet when it was handed over */
        sl_idle_pass_on(idlers);
    }
    join_all(threads);
}

/* False: this thread was itself kept from coming back. Then some got up, and were right to. */
static bool is_back_soon(void)
{
    pthread_t threads[WORKERS];
    bool late = false;
    sleep_all(threads);
    while (begun < WORKERS)
        usleep(1000);
    for (int i = 0; i < 100 && !late; i++) {
        int64_t gone_ns = sl_now_ns();
        sl_idle_hand_over(idlers);
        assert_true(sl_idle_watch(idlers));
        late = sl_now_ns() - gone_ns > 2 * SL_MS;
    }
    usleep(20000);
    int up = woken;
    sl_idle_ring(idlers);
    join_all(threads);
    assert_true(late || up == 0);
    return !late;
}

/* It had a message to deliver, and is back: nobody else needs to get up. */
static void who_is_back_soon_disturbs_nobody(void **state)
{
    int64_t until_ns = sl_now_ns() + 30 * SL_SEC;
    while (!is_back_soon()) {
        if (sl_now_ns() > until_ns)
            skip(); /* on such a machine nobody is */
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

static void a_stop_wakes_all(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    sleep_all(threads);
    sl_stop_ask(&stop, SL_STOP_SOON);
    join_all(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_watches_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(the_bell_wakes_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bell_that_rang_before_the_sleep_is_heard, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(it_rings_once_for_each_sleep, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_sleeps_while_nobody_watches, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_wakes_one, setup, teardown),
        cmocka_unit_test_setup_teardown(the_watch_is_handed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(who_stands_in_passes_it_on, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_back_soon_disturbs_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stop_wakes_all, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
