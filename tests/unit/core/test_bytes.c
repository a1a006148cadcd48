/* SPDX-License-Identifier: Apache-2.0 */
/* Of a header alone: core/bytes.h. */
#include "core/bytes.h"

#include "unit/unit.h"

static void absent_is_not_empty(void **state)
{
    (void)state;
    assert_null(SL_NONE.p);
    assert_null(sl_str_of(NULL).p);
    assert_non_null(sl_str_of("").p);
    assert_false(sl_str_eq(SL_NONE, SL_STR("")));
    assert_true(sl_str_eq(SL_NONE, sl_str_of(NULL)));
    assert_true(sl_str_eq(SL_STR(""), (sl_str){ "x", 0 }));
}

static void equality_is_that_of_all_bytes(void **state)
{
    (void)state;
    assert_true(sl_str_eq(SL_STR("a\0b"), (sl_str){ "a\0bc", 3 }));
    assert_false(sl_str_eq(SL_STR("a\0b"), SL_STR("a\0c")));
    assert_false(sl_str_eq(SL_STR("ab"), SL_STR("abc")));
    assert_false(sl_str_eq(SL_STR("Ab"), SL_STR("ab")));
    assert_int_equal(SL_STR("a\0b").n, 3);
    assert_int_equal(sl_str_of("a\0b").n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_is_not_empty),
        cmocka_unit_test(equality_is_that_of_all_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
