/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/stretch.h"

#include "core/clock.h"
#include "unit/unit.h"

static void it_pays_for_the_busy_with_many_lanes(void **state)
{
    (void)state;
    sl_stretch s = { .able = true };
    assert_false(sl_stretch_pays(&s, 64, 64, 0)); /* nothing is known yet */
    sl_stretch_note(&s, 100, 49, 7);
    assert_false(sl_stretch_pays(&s, 64, 64, 0));
    sl_stretch_note(&s, 100, 50, 7);
    assert_true(sl_stretch_pays(&s, 64, 64, 0));
    assert_true(sl_stretch_pays(&s, 22, 64, 0));
    assert_false(sl_stretch_pays(&s, 21, 64, 0));
    sl_stretch_note(&s, 1, 0, 0);
    assert_false(sl_stretch_pays(&s, 64, 64, 0));
    s = (sl_stretch){ .able = false };
    sl_stretch_note(&s, 100, 100, 7);
    assert_false(sl_stretch_pays(&s, 64, 64, 0));
}

static void it_ends_not_far_from_where_the_last_one_did(void **state)
{
    (void)state;
    sl_stretch s = { .able = true };
    assert_int_equal(sl_stretch_end(&s, 0, 100), 1600);
    sl_stretch_note(&s, 100, 100, 5000);
    assert_int_equal(sl_stretch_end(&s, 0, 100), 5001 + 1600);
    assert_int_equal(sl_stretch_end(&s, 9000, 100), 9000 + 1600);
    sl_stretch_note(&s, 100, 0, 0);
    assert_int_equal(sl_stretch_end(&s, 0, 100), 5001 + 1600);
}

static void ids_end_somewhere(void **state)
{
    (void)state;
    sl_stretch s = { .able = true };
    assert_true(sl_stretch_end(&s, INT64_MAX - 5, 100) == INT64_MAX);
    assert_true(sl_stretch_end(&s, 1, INT64_MAX / 2) == INT64_MAX);
    sl_stretch_note(&s, 1, 1, INT64_MAX);
    assert_true(sl_stretch_end(&s, 0, 1) == INT64_MAX);
}

static void after_a_failure_it_rests(void **state)
{
    (void)state;
    sl_stretch s = { .able = true };
    sl_stretch_note(&s, 100, 100, 7);
    sl_stretch_failed(&s, false, SL_SEC);
    assert_false(sl_stretch_pays(&s, 64, 64, SL_SEC));
    assert_true(sl_stretch_pays(&s, 64, 64, SL_SEC + 100 * SL_MS));
    sl_stretch_failed(&s, true, SL_SEC);
    assert_false(sl_stretch_pays(&s, 64, 64, SL_SEC + 100 * SL_MS));
    assert_true(sl_stretch_pays(&s, 64, 64, 2 * SL_SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_pays_for_the_busy_with_many_lanes),
        cmocka_unit_test(it_ends_not_far_from_where_the_last_one_did),
        cmocka_unit_test(ids_end_somewhere),
        cmocka_unit_test(after_a_failure_it_rests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
