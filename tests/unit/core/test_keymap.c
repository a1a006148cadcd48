/* SPDX-License-Identifier: Apache-2.0 */
#include "core/keymap.h"

#include "unit/unit.h"

#include <stdio.h>

static sl_keymap map;

static int teardown(void **state)
{
    (void)state;
    sl_keymap_fini(&map);
    return 0;
}

static void a_new_key_has_zero_and_keeps_what_it_gets(void **state)
{
    (void)state;
    assert_null(sl_keymap_find(&map, SL_STR("a")));
    assert_int_equal(*sl_keymap_at(&map, SL_STR("a")), 0);
    *sl_keymap_at(&map, SL_STR("a")) = 7;
    assert_int_equal(*sl_keymap_find(&map, SL_STR("a")), 7);
    assert_null(sl_keymap_find(&map, SL_STR("b")));
    assert_int_equal(map.count, 1);
}

static void keys_are_bytes(void **state)
{
    (void)state;
    *sl_keymap_at(&map, SL_STR("a\0b")) = 1;
    *sl_keymap_at(&map, SL_STR("a\0c")) = 2;
    *sl_keymap_at(&map, SL_STR("a")) = 3;
    *sl_keymap_at(&map, SL_STR("")) = 4; /* a key like any other */
    *sl_keymap_at(&map, SL_STR("A")) = 5;
    assert_int_equal(*sl_keymap_find(&map, SL_STR("a\0b")), 1);
    assert_int_equal(*sl_keymap_find(&map, SL_STR("a\0c")), 2);
    assert_int_equal(*sl_keymap_find(&map, SL_STR("a")), 3);
    assert_int_equal(*sl_keymap_find(&map, SL_STR("")), 4);
    assert_int_equal(*sl_keymap_find(&map, SL_STR("A")), 5);
}

static void thousands_of_keys_stay_apart(void **state)
{
    (void)state;
    enum { KEYS = 5000 };
    static char names[KEYS][8];
    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        *sl_keymap_at(&map, sl_str_of(names[i])) = i + 1;
    }
    assert_int_equal(map.count, KEYS);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(*sl_keymap_find(&map, sl_str_of(names[i])), i + 1);
    assert_null(sl_keymap_find(&map, SL_STR("k5000")));
}

static void after_a_reset_it_is_empty(void **state)
{
    (void)state;
    sl_keymap_reset(&map); /* also when it never held anything */
    *sl_keymap_at(&map, SL_STR("a")) = 7;
    sl_keymap_reset(&map);
    assert_null(sl_keymap_find(&map, SL_STR("a")));
    assert_int_equal(*sl_keymap_at(&map, SL_STR("a")), 0);
}

static void ask_for_no_key(void)
{
    (void)sl_keymap_at(&map, SL_NONE);
}

static void an_absent_key_is_a_mistake(void **state)
{
    (void)state;
    assert_true(aborts(ask_for_no_key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_new_key_has_zero_and_keeps_what_it_gets, teardown),
        cmocka_unit_test_teardown(keys_are_bytes, teardown),
        cmocka_unit_test_teardown(thousands_of_keys_stay_apart, teardown),
        cmocka_unit_test_teardown(after_a_reset_it_is_empty, teardown),
        cmocka_unit_test_teardown(an_absent_key_is_a_mistake, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
