/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mem.h"

#include "unit/unit.h"

/* So that a sanitizer's allocator answers as the C library does. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void) __attribute__((visibility("default")));
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void memory_comes_zeroed_even_of_size_zero(void **state)
{
    (void)state;
    char *p = sl_alloc(1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(p[i], 0);
    free(p);
    p = sl_alloc(0);
    assert_non_null(p);
    free(p);
}

static void realloc_keeps_the_bytes(void **state)
{
    (void)state;
    char *p = sl_realloc(NULL, 4);
    memcpy(p, "abc", 4);
    p = sl_realloc(p, 100000);
    assert_string_equal(p, "abc");
    p = sl_realloc(p, 0);
    assert_non_null(p);
    free(p);
}

static void strings_are_copied(void **state)
{
    (void)state;
    assert_null(sl_strdup(NULL));
    char *s = sl_strdup("");
    assert_string_equal(s, "");
    free(s);
    s = sl_strndup("a\0bc", 3);
    assert_memory_equal(s, "a\0b", 4);
    free(s);
    s = sl_asprintf("%s-%05d", "order", 42);
    assert_string_equal(s, "order-00042");
    free(s);
    s = sl_asprintf("%3000s", "x");
    assert_int_equal(strlen(s), 3000);
    free(s);
}

static volatile size_t too_much = SIZE_MAX / 4;

static void alloc_too_much(void)
{
    free(sl_alloc(too_much));
}

static void realloc_too_much(void)
{
    free(sl_realloc(NULL, too_much));
}

static void without_memory_the_process_ends(void **state)
{
    (void)state;
    assert_true(aborts(alloc_too_much));
    assert_true(aborts(realloc_too_much));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_zeroed_even_of_size_zero),
        cmocka_unit_test(realloc_keeps_the_bytes),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(without_memory_the_process_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
