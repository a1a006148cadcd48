/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/kafka_ids.h"

#include "core/clock.h"
#include "unit/unit.h"

enum { MOST = 4096 };

static int64_t told[MOST];
static size_t count;

static void note(void *ctx, int64_t id)
{
    (void)ctx;
    assert_true(count < MOST);
    told[count++] = id;
}

static bool each(const char *text, size_t n)
{
    count = 0;
    return sl_kafka_ids_each((sl_str){ text, n }, note, NULL);
}

static void comes_back(const int64_t *ids, size_t n)
{
    sl_buf b = { 0 };
    int64_t last = 0;
    for (size_t i = 0; i < n; i++)
        sl_kafka_ids_put(&b, &last, ids[i]);
    assert_true(each(sl_buf_text(&b), b.n));
    assert_int_equal(count, n);
    for (size_t i = 0; i < n; i++)
        assert_true(told[i] == ids[i]);
    sl_buf_fini(&b);
}

static void what_is_put_comes_back(void **state)
{
    (void)state;
    static const int64_t ids[] = { 1,         2,         3,         500, 17, 17, INT64_MAX,
                                   INT64_MIN, INT64_MAX, INT64_MIN, -1,  0,  1 };
    comes_back(ids, 0);
    for (size_t n = 1; n <= sizeof ids / sizeof ids[0]; n++)
        comes_back(ids, n);
}

static void any_ids_come_back(void **state)
{
    (void)state;
    int64_t ids[64];
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < 64; i++)
            ids[i] = (int64_t)(sl_random() >> (sl_random() % 64));
        comes_back(ids, 64);
    }
}

static void neighbours_take_a_character(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    int64_t last = 0;
    sl_kafka_ids_put(&b, &last, INT64_C(1) << 40);
    size_t first = b.n;
    for (int64_t i = 1; i <= 1000; i++)
        sl_kafka_ids_put(&b, &last, (INT64_C(1) << 40) + i);
    assert_int_equal(b.n, first + 1000);
    sl_kafka_ids_put(&b, &last, last + 511);
    assert_int_equal(b.n, first + 1002);
    sl_buf_fini(&b);
}

static void other_text_is_refused(void **state)
{
    (void)state;
    assert_false(each("C!", 2));
    assert_int_equal(count, 1);
    assert_false(each("C\0", 2));
    assert_false(each("g", 1));               /* it goes on, and does not */
    assert_false(each("gggggggggggggA", 14)); /* no number is that long */
    assert_true(each("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_back),
        cmocka_unit_test(any_ids_come_back),
        cmocka_unit_test(neighbours_take_a_character),
        cmocka_unit_test(other_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
