/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batch.h"

#include "unit/unit.h"

static void add_ids(sl_batch *b, const int64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sl_batch_add(b)->id = ids[i];
}

static void a_new_message_is_blank_and_pending(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    for (int round = 0; round < 2; round++) { /* the second meets used memory */
        for (int64_t i = 0; i < 1000; i++) {
            sl_msg *m = sl_batch_add(&b);
            assert_int_equal(m->id, 0);
            assert_int_equal(m->verdict, SL_PENDING);
            assert_int_equal(m->delay_ns, -1);
            assert_null(m->payload.p);
            *m = (sl_msg){ .id = i, .verdict = SL_PENDING, .payload = SL_STR("x") };
        }
        assert_int_equal(b.count, 1000);
        assert_int_equal(b.msgs[999].id, 999);
        sl_batch_reset(&b);
        assert_int_equal(b.count, 0);
    }
    sl_batch_fini(&b);
}

static void sort_puts_messages_in_the_order_of_their_ids(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    const int64_t ids[] = { 7, INT64_MIN, 3, INT64_MAX, -1, 0, 5 };
    add_ids(&b, ids, COUNT(ids));
    sl_batch_sort(&b);
    for (size_t i = 1; i < b.count; i++)
        assert_true(b.msgs[i - 1].id < b.msgs[i].id);
    sl_batch_sort(&b);
    assert_int_equal(b.msgs[0].id, INT64_MIN);
    assert_int_equal(b.msgs[6].id, INT64_MAX);
    sl_batch_fini(&b);
}

static void sort_takes_an_empty_batch(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_batch_sort(&b);
    assert_int_equal(b.count, 0);
    sl_batch_fini(&b);
}

static void a_verdict_keeps_its_own_copy_of_the_reason(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    add_ids(&b, (const int64_t[]){ 1, 2 }, 2);
    char why[] = "refused: 413";
    sl_msg_settle(&b, &b.msgs[0], SL_DEAD, sl_str_of(why));
    memset(why, 'x', sizeof why - 1);
    assert_string_equal(b.msgs[0].reason.p, "refused: 413");
    sl_msg_settle(&b, &b.msgs[1], SL_SENT, SL_NONE);
    assert_null(b.msgs[1].reason.p);
    assert_int_equal(b.settled, 2);
    sl_batch_fini(&b);
}

static void a_pull_may_change_its_mind(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    sl_msg *m = sl_batch_add(&b);
    m->delay_ns = 5;
    sl_msg_settle(&b, m, SL_RETRY, SL_STR("later"));
    sl_msg_unsettle(&b, m);
    assert_int_equal(b.settled, 0);
    assert_int_equal(m->verdict, SL_PENDING);
    assert_int_equal(m->delay_ns, -1);
    sl_msg_settle(&b, m, SL_SENT, SL_NONE);
    assert_int_equal(b.settled, 1);
    sl_batch_fini(&b);
}

static void settle_rest_leaves_given_verdicts_alone(void **state)
{
    (void)state;
    sl_batch b;
    sl_batch_init(&b);
    add_ids(&b, (const int64_t[]){ 1, 2, 3 }, 3);
    sl_msg_settle(&b, &b.msgs[1], SL_SENT, SL_NONE);
    sl_batch_settle_rest(&b, SL_UNKNOWN, SL_STR("recalled"));
    assert_int_equal(b.settled, 3);
    assert_int_equal(sl_batch_count_of(&b, SL_UNKNOWN), 2);
    assert_int_equal(sl_batch_count_of(&b, SL_SENT), 1);
    assert_int_equal(sl_batch_count_of(&b, SL_PENDING), 0);
    assert_string_equal(b.msgs[2].reason.p, "recalled");
    sl_batch_fini(&b);
}

static void settle_twice(void)
{
    sl_batch b;
    sl_batch_init(&b);
    sl_msg *m = sl_batch_add(&b);
    sl_msg_settle(&b, m, SL_SENT, SL_NONE);
    sl_msg_settle(&b, m, SL_RETRY, SL_NONE);
}

static void settle_as_pending(void)
{
    sl_batch b;
    sl_batch_init(&b);
    sl_msg_settle(&b, sl_batch_add(&b), SL_PENDING, SL_NONE);
}

static void unsettle_pending(void)
{
    sl_batch b;
    sl_batch_init(&b);
    sl_msg_unsettle(&b, sl_batch_add(&b));
}

static void a_second_verdict_is_a_bug_that_ends_the_process(void **state)
{
    (void)state;
    assert_true(aborts(settle_twice));
    assert_true(aborts(settle_as_pending));
    assert_true(aborts(unsettle_pending));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_message_is_blank_and_pending),
        cmocka_unit_test(sort_puts_messages_in_the_order_of_their_ids),
        cmocka_unit_test(sort_takes_an_empty_batch),
        cmocka_unit_test(a_verdict_keeps_its_own_copy_of_the_reason),
        cmocka_unit_test(a_pull_may_change_its_mind),
        cmocka_unit_test(settle_rest_leaves_given_verdicts_alone),
        cmocka_unit_test(a_second_verdict_is_a_bug_that_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
