/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/care.h"

#include "core/clock.h"

#include "unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>

static sl_care *care;

static int setup(void **state)
{
    (void)state;
    care = sl_care_new(3600 * SL_SEC);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_care_free(care);
    return 0;
}

static int64_t turn(int64_t max, sl_step next)
{
    bool careful;
    int64_t n = sl_care_enter(care, max, &careful);
    if (careful)
        sl_care_leave(care, next);
    return careful ? n : -n;
}

static void without_an_alarm_all_goes_at_once(void **state)
{
    (void)state;
    bool careful = true;
    assert_int_equal(turn(500, SL_STEP_LARGER), -500);
    assert_int_equal(sl_care_enter(NULL, 7, &careful), 7);
    assert_false(careful);
}

static void steps_double_when_all_is_well(void **state)
{
    (void)state;
    sl_care_alarm(care);
    assert_int_equal(turn(500, SL_STEP_LARGER), 1);
    assert_int_equal(turn(500, SL_STEP_LARGER), 2);
    assert_int_equal(turn(500, SL_STEP_STAY), 4); /* nothing there, or it failed */
    assert_int_equal(turn(500, SL_STEP_LARGER), 4);
    assert_int_equal(turn(5, SL_STEP_LARGER), 5); /* never more than asked for */
    assert_int_equal(turn(500, SL_STEP_SINGLE), 16);
    assert_int_equal(turn(500, SL_STEP_SINGLE), 1); /* as long as some were tried before */
    for (int i = 0; i < 14; i++)
        (void)turn(500, SL_STEP_LARGER);
    assert_int_equal(turn(500, SL_STEP_LARGER), -500);
}

static void another_death_begins_anew(void **state)
{
    (void)state;
    bool careful;
    sl_care_alarm(care);
    for (int i = 0; i < 5; i++)
        (void)turn(500, SL_STEP_LARGER);
    assert_int_equal(sl_care_enter(care, 500, &careful), 32);
    sl_care_alarm(care); /* in the middle of a turn */
    sl_care_leave(care, SL_STEP_LARGER);
    assert_in_range(turn(500, SL_STEP_LARGER), 1, 2);
}

/* Retries that never end would keep it at one message for ever. */
static void it_ends_some_time_after_the_last_death(void **state)
{
    (void)state;
    sl_care_free(care);
    care = sl_care_new(50 * SL_MS);
    int64_t began_ns = sl_now_ns();
    sl_care_alarm(care);
    while (turn(500, SL_STEP_SINGLE) == 1)
        assert_true(sl_now_ns() - began_ns < 20 * SL_SEC);
    assert_true(sl_now_ns() - began_ns >= 50 * SL_MS);
    assert_int_equal(turn(500, SL_STEP_SINGLE), -500);
}

static _Atomic int inside, most, turns;

static void *work(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200; i++) {
        bool careful;
        (void)!sl_care_enter(care, 10, &careful);
        if (!careful)
            continue;
        int now = ++inside;
        if (now > most)
            most = now;
        turns++;
        inside--;
        sl_care_leave(care, SL_STEP_STAY);
    }
    return NULL;
}

static void only_one_at_a_time(void **state)
{
    (void)state;
    pthread_t threads[4];
    sl_care_alarm(care);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(turns, 800);
    assert_int_equal(most, 1);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_an_alarm_all_goes_at_once),
        TEST(steps_double_when_all_is_well),
        TEST(another_death_begins_anew),
        TEST(it_ends_some_time_after_the_last_death),
        TEST(only_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
