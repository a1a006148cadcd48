/* SPDX-License-Identifier: Apache-2.0 */
#include "core/arena.h"

#include "unit/unit.h"

#include <stdalign.h>

static void allocations_are_aligned_and_apart(void **state)
{
    (void)state;
    sl_arena a = { 0 };
    char *before = NULL;
    for (size_t bytes = 1; bytes < 100; bytes++) {
        char *p = sl_arena_alloc(&a, bytes);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        if (before)
            assert_true(p >= before + bytes - 1);
        memset(p, (int)bytes, bytes);
        before = p;
    }
    assert_int_equal(a.used_bytes, 99 * 100 / 2);
    sl_arena_fini(&a);
}

static void nothing_moves_while_the_arena_grows(void **state)
{
    (void)state;
    sl_arena a = { 0 };
    char *kept[64];
    for (int i = 0; i < 64; i++) {
        kept[i] = sl_arena_alloc(&a, 50000);
        memset(kept[i], i, 50000);
    }
    for (int i = 0; i < 64; i++) {
        assert_int_equal(kept[i][0], i);
        assert_int_equal(kept[i][49999], i);
    }
    sl_arena_fini(&a);
}

static void reset_keeps_memory_for_the_next_batch(void **state)
{
    (void)state;
    sl_arena a = { 0 };
    void *first = sl_arena_alloc(&a, 1000);
    for (int i = 0; i < 10; i++)
        sl_arena_alloc(&a, 100000);
    sl_arena_reset(&a);
    assert_int_equal(a.used_bytes, 0);
    assert_ptr_equal(sl_arena_alloc(&a, 1000), first);
    sl_arena_fini(&a);
}

static void reset_gives_back_what_one_huge_payload_took(void **state)
{
    (void)state;
    sl_arena a = { 0 };
    void *small = sl_arena_alloc(&a, 10);
    char *huge = sl_arena_alloc(&a, 50 * 1000 * 1000);
    huge[50 * 1000 * 1000 - 1] = 'x';
    sl_arena_reset(&a);
    assert_ptr_equal(a.first, a.current);
    assert_ptr_equal(sl_arena_alloc(&a, 10), small);
    sl_arena_fini(&a);

    sl_arena only = { 0 }; /* a large one that came first */
    sl_arena_alloc(&only, 1000 * 1000);
    sl_arena_reset(&only);
    assert_null(only.first);
    assert_non_null(sl_arena_alloc(&only, 1));
    sl_arena_fini(&only);
}

static void copies_are_terminated_and_absent_stays_absent(void **state)
{
    (void)state;
    sl_arena a = { 0 };
    char from[] = { 'a', '\0', 'b' };
    sl_str copy = sl_arena_copy(&a, (sl_str){ from, 3 });
    from[0] = 'x';
    assert_int_equal(copy.n, 3);
    assert_memory_equal(copy.p, "a\0b", 4);

    sl_str empty = sl_arena_copy(&a, SL_STR(""));
    assert_non_null(empty.p);
    assert_int_equal(empty.n, 0);
    assert_string_equal(empty.p, "");
    assert_null(sl_arena_copy(&a, SL_NONE).p);
    sl_arena_fini(&a);
}

static void fini_is_harmless_on_an_unused_arena(void **state)
{
    (void)state;
    sl_arena a = { 0 };
    sl_arena_reset(&a);
    sl_arena_fini(&a);
    sl_arena_fini(&a);
    assert_null(a.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_apart),
        cmocka_unit_test(nothing_moves_while_the_arena_grows),
        cmocka_unit_test(reset_keeps_memory_for_the_next_batch),
        cmocka_unit_test(reset_gives_back_what_one_huge_payload_took),
        cmocka_unit_test(copies_are_terminated_and_absent_stays_absent),
        cmocka_unit_test(fini_is_harmless_on_an_unused_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
