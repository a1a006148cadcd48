/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/watched.h"

#include "core/clock.h"
#include "unit/unit.h"

#include <math.h>

enum { FIRST = 101, COUNT = 100, KEYS = 10, LAST = FIRST + COUNT - 1 };

static sl_watched w;
static sl_err err;
static const sl_fill fill = { .rows = COUNT, .keys = KEYS };

static int setup(void **state)
{
    (void)state;
    err = (sl_err){ 0 };
    return sl_watched_make(&w, FIRST, COUNT, 0, &err) == SL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    sl_watched_remove(&w);
    return 0;
}

static sl_tapped *of(int64_t id)
{
    return &w.tap->messages[id - FIRST];
}

/* As a node would: one each millisecond. */
static void deliver(int64_t id)
{
    if (of(id)->times++ == 0) {
        of(id)->turn = ++w.tap->turns;
        of(id)->at_ns = w.tap->turns * SL_MS;
    }
}

static void deliver_all(void)
{
    for (int64_t id = FIRST; id <= LAST; id++)
        deliver(id);
}

static sl_rc check(bool all, bool ordered)
{
    return sl_watched_check(&w, &fill, FIRST, LAST, all, ordered, &err);
}

static void all_is_well(void **state)
{
    (void)state;
    deliver_all();
    assert_int_equal(check(true, true), SL_OK);
    assert_int_equal(sl_watched_count(&w), COUNT);
}

static void expect(const char *text)
{
    if (!strstr(err.text, text))
        fail_msg("'%s' is not in: %s", text, err.text);
}

static void one_is_lost(void **state)
{
    (void)state;
    for (int64_t id = FIRST; id < LAST; id++)
        deliver(id);
    assert_int_equal(check(false, true), SL_OK);
    assert_int_equal(check(true, true), SL_OPERATOR);
    expect("1 were lost");
}

static void one_comes_twice(void **state)
{
    (void)state;
    deliver_all();
    deliver(FIRST + 7);
    assert_int_equal(check(false, false), SL_OPERATOR);
    expect("1 came twice");
}

/* Between keys there is no order. */
static void one_overtakes(void **state)
{
    (void)state;
    deliver(FIRST + 1);
    deliver(FIRST + 1 + 2 * KEYS);
    deliver_all();
    of(FIRST + 1)->times = of(FIRST + 1 + 2 * KEYS)->times = 1;
    assert_int_equal(check(true, false), SL_OK);
    assert_int_equal(check(true, true), SL_OPERATOR);
    expect("1 before one of their key");
}

static void the_hot_key_is_one(void **state)
{
    (void)state;
    sl_fill hot = { .rows = COUNT, .keys = COUNT, .hot = 2 };
    for (int64_t id = FIRST; id <= LAST; id += 2)
        deliver(id); /* each of its own key */
    for (int64_t id = LAST; id >= FIRST; id--)
        deliver(id);
    for (int64_t id = FIRST; id <= LAST; id++)
        of(id)->times = 1;
    assert_int_equal(sl_watched_check(&w, &hot, FIRST, LAST, true, true, &err), SL_OPERATOR);
    expect("49 before one of their key");
}

/* Each second one is of key 7 then, whatever its id is. */
static void keys_that_were_drawn(void **state)
{
    (void)state;
    int32_t drawn[COUNT];
    sl_fill by_hand = { .rows = COUNT, .keys = KEYS, .drawn = drawn };
    for (int i = 0; i < COUNT; i++)
        drawn[i] = i % 2 ? 7 : i / 2 % 7;
    deliver(FIRST + 2);
    deliver(FIRST + 5);
    deliver_all();
    for (int64_t id = FIRST; id <= LAST; id++)
        of(id)->times = 1;
    assert_int_equal(sl_watched_check(&w, &by_hand, FIRST, LAST, true, true, &err),
                     SL_OPERATOR);
    expect("1 before one of their key"); /* FIRST + 5 */
}

static void a_stranger(void **state)
{
    (void)state;
    deliver_all();
    w.tap->strangers = 3;
    assert_int_equal(check(true, true), SL_OPERATOR);
    expect("3 others came");
}

static bool is_even(void *ctx, int64_t id)
{
    (void)ctx;
    return id % 2 == 0;
}

static void rates(void **state)
{
    (void)state;
    assert_true(sl_watched_rate(&w, FIRST, LAST, 1, NULL, NULL) == 0);
    deliver_all();
    assert_true(fabs(sl_watched_rate(&w, FIRST, LAST, 1, NULL, NULL) - 1000) < 0.1);
    assert_true(fabs(sl_watched_rate(&w, FIRST, LAST, 1, is_even, NULL) - 500) < 0.1);
    of(LAST)->at_ns = 1000 * SL_SEC; /* beyond what is counted */
    assert_true(fabs(sl_watched_rate(&w, FIRST, LAST, 0.8, NULL, NULL) - 1000) < 0.1);
}

/* What comes in batches of five each 10 ms comes at 500 a second, however few batches are counted. */
static void a_batch_counts_with_its_pause(void **state)
{
    (void)state;
    deliver_all();
    for (int64_t id = FIRST; id <= LAST; id++)
        of(id)->at_ns = 1 + (id - FIRST) / 5 * 10 * SL_MS;
    assert_true(fabs(sl_watched_rate(&w, FIRST, LAST, 0.8, NULL, NULL) - 500) < 0.1);
    assert_true(fabs(sl_watched_rate(&w, FIRST, LAST, 0.1, NULL, NULL) - 500) < 0.1);
}

static void percentiles(void **state)
{
    (void)state;
    double v[200];
    for (int i = 0; i < 200; i++)
        v[i] = i + 1;
    assert_true(sl_percentile(v, 200, 0.5) == 100 && sl_percentile(v, 200, 0.99) == 198);
    assert_true(sl_percentile(v, 200, 0.999) == 200 && sl_percentile(v, 1, 0.5) == 1);
    assert_true(isnan(sl_percentile(v, 0, 0.5)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_is_well),        TEST(one_is_lost),
        TEST(one_comes_twice),    TEST(one_overtakes),
        TEST(the_hot_key_is_one), TEST(keys_that_were_drawn),
        TEST(a_stranger),         TEST(rates),
        TEST(percentiles),        TEST(a_batch_counts_with_its_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
