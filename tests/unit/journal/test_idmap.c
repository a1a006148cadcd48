/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/idmap.h"

#include "core/clock.h"
#include "unit/unit.h"

enum { IDS = 500, STEPS = 200000 };

static void an_empty_one_knows_nothing(void **state)
{
    (void)state;
    sl_idmap m = { 0 };
    assert_null(sl_idmap_find(&m, 0));
    sl_idmap_drop(&m, 0);
    sl_idmap_fini(&m);
    sl_idmap_fini(&m);
}

static void the_last_word_counts(void **state)
{
    (void)state;
    sl_idmap m = { 0 };
    sl_idmap_put(&m, 0, 5, 3);
    sl_idmap_put(&m, INT64_MIN, 6, 4);
    sl_idmap_put(&m, 0, 7, 5);
    assert_int_equal(m.count, 2);
    assert_int_equal(sl_idmap_find(&m, 0)->epoch, 7);
    assert_int_equal(sl_idmap_find(&m, 0)->state, 5);
    assert_int_equal(sl_idmap_find(&m, INT64_MIN)->epoch, 6);
    assert_null(sl_idmap_find(&m, 1));
    sl_idmap_fini(&m);
}

/* Beside an array that does the same. Few ids and many drops, so that holes are filled all the time. */
static void it_does_what_an_array_does(void **state)
{
    (void)state;
    sl_idmap m = { 0 };
    int64_t want[IDS] = { 0 }; /* epoch; 0: not in it */
    size_t count = 0;
    for (int64_t step = 1; step <= STEPS; step++) {
        size_t i = sl_random() % IDS;
        int64_t id = (int64_t)(i * 4096) - 100000;
        if (sl_random() % 2) {
            sl_idmap_put(&m, id, step, 3);
            count += want[i] == 0;
            want[i] = step;
        } else {
            sl_idmap_drop(&m, id);
            count -= want[i] != 0;
            want[i] = 0;
        }
        assert_int_equal(m.count, count);
        size_t k = sl_random() % IDS;
        const sl_idmap_slot *s = sl_idmap_find(&m, (int64_t)(k * 4096) - 100000);
        assert_int_equal(s ? s->epoch : 0, want[k]);
    }
    for (size_t i = 0; i < IDS; i++) {
        const sl_idmap_slot *s = sl_idmap_find(&m, (int64_t)(i * 4096) - 100000);
        assert_int_equal(s ? s->epoch : 0, want[i]);
    }
    sl_idmap_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_knows_nothing),
        cmocka_unit_test(the_last_word_counts),
        cmocka_unit_test(it_does_what_an_array_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
