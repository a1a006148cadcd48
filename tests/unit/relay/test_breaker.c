/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/breaker.h"

#include "core/clock.h"
#include "unit/unit.h"

#include <time.h>

static sl_breaker *breaker;
static int64_t wait_ns;

static int setup(void **state)
{
    (void)state;
    breaker = sl_breaker_new(5 * SL_MS, 20 * SL_MS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_breaker_free(breaker);
    return 0;
}

static sl_pass ask(void)
{
    wait_ns = -1;
    return sl_breaker_ask(breaker, &wait_ns);
}

/* Until a probe may go. */
static void wait_for_probe(void)
{
    sl_pass pass;
    while ((pass = ask()) == SL_PASS_NONE)
        nanosleep(&(struct timespec){ .tv_nsec = SL_MS }, NULL);
    assert_int_equal(pass, SL_PASS_ONE);
}

static void closed_it_lets_all_through(void **state)
{
    (void)state;
    assert_int_equal(ask(), SL_PASS_ALL);
    assert_false(sl_breaker_tell(breaker, SL_PASS_ALL, SL_CAME_UP));
    assert_false(sl_breaker_tell(breaker, SL_PASS_ALL, SL_CAME_NOTHING));
    assert_int_equal(ask(), SL_PASS_ALL);
}

/* With pauses that do not end while this test runs, however slowly. */
static void open_it_lets_none_through(void **state)
{
    (void)state;
    sl_breaker_free(breaker);
    breaker = sl_breaker_new(1000 * SL_SEC, 8000 * SL_SEC);
    assert_true(sl_breaker_tell(breaker, SL_PASS_ALL, SL_CAME_DOWN));
    assert_false(
        sl_breaker_tell(breaker, SL_PASS_ALL, SL_CAME_DOWN)); /* on its way meanwhile */
    assert_int_equal(ask(), SL_PASS_NONE);
    assert_in_range(wait_ns, 700 * SL_SEC, 1200 * SL_SEC);
    assert_false(sl_breaker_tell(breaker, SL_PASS_ONE, SL_CAME_DOWN));
    assert_int_equal(ask(), SL_PASS_NONE);
    assert_in_range(wait_ns, 1500 * SL_SEC, 2400 * SL_SEC); /* the pauses grow */
}

static void after_a_pause_one_may_try(void **state)
{
    (void)state;
    assert_true(sl_breaker_tell(breaker, SL_PASS_ALL, SL_CAME_DOWN));
    wait_for_probe();
    assert_int_equal(ask(), SL_PASS_NONE); /* it is another's */
    assert_true(wait_ns > 0);
    assert_int_equal(sl_breaker_failures(breaker), 1);
    assert_false(sl_breaker_tell(breaker, SL_PASS_ONE, SL_CAME_DOWN));
    assert_int_equal(sl_breaker_failures(breaker), 2);
    wait_for_probe();
}

static void a_probe_that_comes_through_closes_it(void **state)
{
    (void)state;
    assert_true(sl_breaker_tell(breaker, SL_PASS_ALL, SL_CAME_DOWN));
    wait_for_probe();
    assert_true(sl_breaker_tell(breaker, SL_PASS_ONE, SL_CAME_UP));
    assert_int_equal(ask(), SL_PASS_ALL);
}

static void a_probe_that_met_nothing_leaves_it_to_the_next(void **state)
{
    (void)state;
    assert_true(sl_breaker_tell(breaker, SL_PASS_ALL, SL_CAME_DOWN));
    wait_for_probe();
    assert_false(sl_breaker_tell(breaker, SL_PASS_ONE, SL_CAME_NOTHING));
    assert_int_equal(ask(), SL_PASS_ONE);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(closed_it_lets_all_through),
        TEST(open_it_lets_none_through),
        TEST(after_a_pause_one_may_try),
        TEST(a_probe_that_comes_through_closes_it),
        TEST(a_probe_that_met_nothing_leaves_it_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
