/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"

#include "unit/unit.h"

#include <pthread.h>
#include <time.h>

static void the_monotonic_clock_never_falls(void **state)
{
    (void)state;
    int64_t before = sl_now_ns();
    for (int i = 0; i < 10000; i++) {
        int64_t now = sl_now_ns();
        assert_true(now >= before);
        before = now;
    }
}

static void the_wall_clock_is_unix_time_in_microseconds(void **state)
{
    (void)state;
    int64_t before = time(NULL);
    int64_t got = sl_wall_us();
    assert_in_range(got / 1000000, before, before + 5);
}

static void random_numbers_use_all_bits(void **state)
{
    (void)state;
    uint64_t ones = 0, zeros = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t r = sl_random();
        ones |= r;
        zeros |= ~r;
    }
    assert_true(ones == UINT64_MAX);
    assert_true(zeros == UINT64_MAX);
}

static void *draw(void *out)
{
    *(uint64_t *)out = sl_random();
    return NULL;
}

static void each_thread_has_a_stream_of_its_own(void **state)
{
    (void)state;
    uint64_t got[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw, &got[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(got[0] != got[1]);
}

static void assert_near(unsigned attempt, int64_t base, int64_t max, int64_t expected)
{
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 2000; i++) {
        int64_t d = sl_backoff_ns(attempt, base, max);
        least = d < least ? d : least;
        most = d > most ? d : most;
    }
    assert_in_range(least, expected * 8 / 10, expected * 9 / 10);
    assert_in_range(most, expected * 11 / 10, expected * 12 / 10);
}

static void delays_double_with_jitter_up_to_a_limit(void **state)
{
    (void)state;
    assert_near(0, SL_SEC, 300 * SL_SEC, SL_SEC);
    assert_near(1, SL_SEC, 300 * SL_SEC, SL_SEC);
    assert_near(2, SL_SEC, 300 * SL_SEC, 2 * SL_SEC);
    assert_near(9, SL_SEC, 300 * SL_SEC, 256 * SL_SEC);
    assert_near(10, SL_SEC, 300 * SL_SEC, 300 * SL_SEC);
    assert_near(UINT32_MAX, SL_SEC, 300 * SL_SEC, 300 * SL_SEC);
    assert_near(3, SL_SEC, SL_MS, SL_MS); /* a base above the limit */
}

static void delays_do_not_overflow(void **state)
{
    (void)state;
    const int64_t month = INT64_C(30) * 86400 * SL_SEC; /* the largest that may be set */
    assert_near(1000, SL_MS, month, month);
    assert_near(1000, month, month, month);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_monotonic_clock_never_falls),
        cmocka_unit_test(the_wall_clock_is_unix_time_in_microseconds),
        cmocka_unit_test(random_numbers_use_all_bits),
        cmocka_unit_test(each_thread_has_a_stream_of_its_own),
        cmocka_unit_test(delays_double_with_jitter_up_to_a_limit),
        cmocka_unit_test(delays_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
