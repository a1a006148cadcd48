/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/stretch.h"

#include "core/clock.h"
#include "unit/unit.h"

static void it_pays_with_many_lanes_not_far_below(void **state)
{
    (void)state;
    sl_stretch s = { .able = true };
    assert_true(sl_stretch_has_part(64, 64));
    assert_true(sl_stretch_has_part(16, 64));
    assert_false(sl_stretch_has_part(15, 64));
    assert_true(sl_stretch_pays(&s, 0, 100, 0)); /* nothing is known yet */
    sl_stretch_note(&s, 100, 1, 10000);
    assert_true(sl_stretch_pays(&s, 10001, 100, 0));
    assert_true(sl_stretch_pays(&s, 10001 - 6400, 100, 0));
    assert_false(sl_stretch_pays(&s, 10001 - 6401, 100, 0));
    s.able = false;
    assert_false(sl_stretch_pays(&s, 10001, 100, 0));
}

static void half_a_batch_is_busy(void **state)
{
    (void)state;
    sl_stretch s = { .able = true };
    sl_stretch_note(&s, 100, 49, 7);
    assert_false(s.busy);
    sl_stretch_note(&s, 100, 50, 7);
    assert_true(s.busy);
    sl_stretch_note(&s, 1, 0, 0);
    assert_false(s.busy);
    assert_int_equal(s.next, 8);
}

static void a_range_is_dense_or_not(void **state)
{
    (void)state;
    assert_true(sl_stretch_dense(7, 7, 1));
    assert_true(sl_stretch_dense(1, 400, 100));
    assert_false(sl_stretch_dense(1, 401, 100));
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
    assert_false(sl_stretch_pays(&s, 0, 64, SL_SEC));
    assert_true(sl_stretch_pays(&s, 0, 64, SL_SEC + 100 * SL_MS));
    sl_stretch_failed(&s, true, SL_SEC);
    assert_false(sl_stretch_pays(&s, 0, 64, SL_SEC + 100 * SL_MS));
    assert_true(sl_stretch_pays(&s, 0, 64, 2 * SL_SEC));
}

static void which_ids(const int64_t *ids, size_t n, const char *map, int64_t first)
{
    sl_val in[2];
    sl_arena arena = { 0 };
    sl_stretch_map(in, &arena, ids, n);
    assert_false(in[0].null);
    assert_int_equal(in[0].s.n, strlen(map));
    for (size_t i = 0; map[i]; i++)
        assert_int_equal(in[0].s.p[i], map[i] - '0');
    assert_true(in[1].i == first);
    sl_arena_fini(&arena);
}

static void a_map_has_a_byte_for_each_id(void **state)
{
    (void)state;
    which_ids((int64_t[]){ 5, 6, 9 }, 3, "11001", 5);
    which_ids((int64_t[]){ 9, 5, 6 }, 3, "11001", 5);
    which_ids((int64_t[]){ INT64_MAX, INT64_MAX - 2 }, 2, "101", INT64_MAX - 2);
    which_ids((int64_t[]){ -3 }, 1, "1", -3);
    which_ids(NULL, 0, "", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_pays_with_many_lanes_not_far_below),
        cmocka_unit_test(half_a_batch_is_busy),
        cmocka_unit_test(a_range_is_dense_or_not),
        cmocka_unit_test(it_ends_not_far_from_where_the_last_one_did),
        cmocka_unit_test(ids_end_somewhere),
        cmocka_unit_test(after_a_failure_it_rests),
        cmocka_unit_test(a_map_has_a_byte_for_each_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
