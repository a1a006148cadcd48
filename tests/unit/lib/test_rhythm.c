/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rhythm.h"

#include "unit/unit.h"

/* Some time after the machine was started. */
#define BEGAN_NS (INT64_C(1000) * SL_SEC)

/* So many turns find something, so long after each other; returns when the last one did. */
static int64_t beat(sl_rhythm *r, int64_t from_ns, int64_t gap_ns, int times)
{
    for (int i = 0; i < times; i++)
        sl_rhythm_found(r, from_ns += gap_ns);
    return from_ns;
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    sl_rhythm r = { 0 };
    assert_false(sl_rhythm_soon(&r, BEGAN_NS));
    assert_true(sl_rhythm_quiet(&r, BEGAN_NS));
    sl_rhythm_found(&r, BEGAN_NS);
    assert_false(sl_rhythm_soon(&r, BEGAN_NS + 1)); /* one commit is no rhythm */
    assert_false(sl_rhythm_quiet(&r, BEGAN_NS + 1));
}

static void commits_close_together_make_the_next_one_likely(void **state)
{
    (void)state;
    sl_rhythm r = { 0 };
    int64_t now_ns = beat(&r, BEGAN_NS, SL_MS, 10);
    assert_true(sl_rhythm_soon(&r, now_ns + 1));
    assert_true(sl_rhythm_soon(&r, now_ns + SL_MS));
}

/* A commit each two milliseconds: to be woken is as cheap, and sooner. */
static void commits_far_apart_do_not(void **state)
{
    (void)state;
    sl_rhythm r = { 0 };
    int64_t now_ns = beat(&r, BEGAN_NS, 2 * SL_MS, 100);
    assert_false(sl_rhythm_soon(&r, now_ns + 1));
}

/* Each of four workers has a part of each commit. */
static void those_who_share_a_commit_count_once(void **state)
{
    (void)state;
    sl_rhythm r = { 0 };
    int64_t now_ns = BEGAN_NS;
    for (int i = 0; i < 100; i++)
        now_ns = beat(&r, now_ns + 4 * SL_MS, SL_MS / 10, 4);
    assert_false(sl_rhythm_soon(&r, now_ns + 1));
    for (int i = 0; i < 100; i++)
        now_ns = beat(&r, now_ns + SL_MS / 2, SL_MS / 10, 4);
    assert_true(sl_rhythm_soon(&r, now_ns + 1));
}

static void when_the_next_one_does_not_come_it_is_over(void **state)
{
    (void)state;
    sl_rhythm r = { 0 };
    int64_t now_ns = beat(&r, BEGAN_NS, SL_MS, 100);
    assert_false(sl_rhythm_soon(&r, now_ns + 2 * SL_MS));
    assert_false(sl_rhythm_quiet(&r, now_ns + SL_RHYTHM_QUIET_NS - 1));
    assert_true(sl_rhythm_quiet(&r, now_ns + SL_RHYTHM_QUIET_NS));
}

/* An hour without a message is forgotten after a few of them. */
static void a_new_rhythm_is_learnt_soon_after_a_long_rest(void **state)
{
    (void)state;
    sl_rhythm r = { 0 };
    int64_t now_ns = beat(&r, BEGAN_NS, SL_MS, 100);
    now_ns = beat(&r, now_ns + 3600 * SL_SEC, SL_MS, 1);
    now_ns = beat(&r, now_ns, SL_MS, 8);
    assert_true(sl_rhythm_soon(&r, now_ns + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(commits_close_together_make_the_next_one_likely),
        cmocka_unit_test(commits_far_apart_do_not),
        cmocka_unit_test(those_who_share_a_commit_count_once),
        cmocka_unit_test(when_the_next_one_does_not_come_it_is_over),
        cmocka_unit_test(a_new_rhythm_is_learnt_soon_after_a_long_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
