/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pace.h"

#include "core/clock.h"
#include "unit/unit.h"

#define BEGAN_NS (1000 * SL_SEC)

static const sl_pace pace = {
    .began_ns = BEGAN_NS, .rate = 1001, .seconds = 2, .producers = 3, .keys = 10
};

static int64_t after(int64_t ms)
{
    return BEGAN_NS + ms * SL_MS;
}

/* What all would commit at once that have committed nothing yet. */
static int64_t due(const sl_pace *p, int64_t now_ns)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->producers; i++)
        n += sl_pace_step(p, i, 0, now_ns);
    return n;
}

static void shares_are_all_of_it(void **state)
{
    (void)state;
    assert_int_equal(due(&pace, after(0)), 1);
    assert_int_equal(due(&pace, after(500)), 501);
    assert_int_equal(due(&pace, after(1000)), 1002);
    assert_int_equal(sl_pace_step(&pace, 0, 0, after(1000)), 334);
    assert_int_equal(sl_pace_step(&pace, 0, 300, after(1000)), 34);
    assert_int_equal(sl_pace_step(&pace, 0, 400, after(1000)), 0); /* ahead: by a clock */
}

static void a_transaction_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(sl_pace_step(&pace, 2, 0, after(1990)), SL_PACE_TX);
    assert_int_equal(sl_pace_step(&pace, 2, SL_PACE_TX, after(1990)), 664 - SL_PACE_TX);
}

static void the_end_is_a_number(void **state)
{
    (void)state;
    /* 2002 are 668, 667 and 667. */
    assert_int_equal(sl_pace_step(&pace, 0, 600, after(60000)), 68);
    assert_int_equal(sl_pace_step(&pace, 1, 600, after(60000)), 67);
    assert_true(sl_pace_is_over(&pace, 1, 667, after(1999)));
    assert_false(sl_pace_is_over(&pace, 0, 667, after(1999)));
}

static void or_the_time(void **state)
{
    (void)state;
    assert_false(sl_pace_is_over(&pace, 0, 10, after(3000)));
    assert_true(sl_pace_is_over(&pace, 0, 10, after(3001)));
}

static void they_take_turns(void **state)
{
    (void)state;
    assert_int_equal(sl_pace_next_ns(&pace, 0, after(0)), after(2));
    assert_int_equal(sl_pace_next_ns(&pace, 1, 0), BEGAN_NS + 2 * SL_MS / 3);
    assert_int_equal(sl_pace_next_ns(&pace, 1, after(1)), after(2) + 2 * SL_MS / 3);
    assert_int_equal(sl_pace_next_ns(&pace, 0, after(13)), after(14)); /* what was missed is */
}

static void a_key_has_one_producer(void **state)
{
    (void)state;
    int64_t of[10] = { 0 };
    for (int64_t i = 0; i < pace.producers; i++)
        for (int64_t n = 0; n < 20; n++) {
            int64_t key = sl_pace_key(&pace, i, n);
            assert_in_range(key, 0, 9);
            assert_true(of[key] == 0 || of[key] == i + 1);
            of[key] = i + 1;
        }
    for (int64_t k = 0; k < 10; k++)
        assert_int_equal(of[k], k % 3 + 1);
    assert_int_equal(sl_pace_key(&pace, 0, 1), 3);
    assert_int_equal(sl_pace_key(&pace, 0, 4), 0); /* it has four: 0, 3, 6 and 9 */
}

static void as_many_as_needed(void **state)
{
    (void)state;
    assert_int_equal(sl_pace_producers(1), 1);
    assert_int_equal(sl_pace_producers(100000), 1);
    assert_int_equal(sl_pace_producers(100001), 2);
    assert_int_equal(sl_pace_producers(10000000), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_all_of_it), cmocka_unit_test(a_transaction_is_bounded),
        cmocka_unit_test(the_end_is_a_number),  cmocka_unit_test(or_the_time),
        cmocka_unit_test(they_take_turns),      cmocka_unit_test(a_key_has_one_producer),
        cmocka_unit_test(as_many_as_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
