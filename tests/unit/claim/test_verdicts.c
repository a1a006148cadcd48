/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/verdicts.h"

#include "core/clock.h"
#include "unit/unit.h"

static sl_batch batch;
static sl_groups g;

static int setup(void **state)
{
    (void)state;
    sl_batch_init(&batch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_batch_fini(&batch);
    return 0;
}

static void add(int64_t id, sl_verdict v, const char *reason)
{
    sl_msg *m = sl_batch_add(&batch);
    m->id = id;
    m->epoch = id + 100;
    m->attempt = 1;
    sl_msg_settle(&batch, m, v, sl_str_of(reason));
}

static void make(void)
{
    sl_groups_make(&g, &batch, SL_SEC, 60 * SL_SEC);
}

static void each_goes_to_its_group(void **state)
{
    (void)state;
    add(1, SL_SENT, NULL);
    add(2, SL_RETRY, "slow");
    add(3, SL_DEAD, "bad");
    add(4, SL_UNKNOWN, "who knows"); /* at least once: again */
    add(5, SL_RELEASED, NULL);
    add(6, SL_HELD, NULL); /* stays as it is */
    add(7, SL_SENT, NULL);
    make();
    assert_int_equal(g.sent.n, 2);
    assert_int_equal(g.sent.ids[1], 7);
    assert_int_equal(g.sent.epochs[1], 107);
    assert_int_equal(g.retry.n, 2);
    assert_int_equal(g.retry.ids[0], 2);
    assert_int_equal(g.retry.ids[1], 4);
    assert_int_equal(g.dead.n, 1);
    assert_int_equal(g.dead.ids[0], 3);
    assert_true(sl_str_eq(g.dead.reasons[0], SL_STR("bad")));
    assert_int_equal(g.released.n, 1);
}

static void an_empty_batch_has_empty_groups(void **state)
{
    (void)state;
    make();
    assert_int_equal(g.sent.n + g.retry.n + g.dead.n + g.released.n, 0);
}

static void a_delay_is_the_sinks_or_grows(void **state)
{
    (void)state;
    add(1, SL_RETRY, NULL);
    add(2, SL_RETRY, NULL);
    batch.msgs[0].delay_ns = 5 * SL_SEC;
    batch.msgs[1].attempt = 3;
    make();
    assert_int_equal(g.retry.delays_us[0], 5000000);
    assert_in_range(g.retry.delays_us[1], 3200000, 4800000);
}

static void a_reason_can_be_stored(void **state)
{
    (void)state;
    char long_one[2000];
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    add(1, SL_RETRY, "line\nbreak\ttab\x7f");
    add(2, SL_RETRY, "half a letter \xc3");
    add(3, SL_RETRY, long_one);
    add(4, SL_RETRY, NULL);
    make();
    assert_true(sl_str_eq(g.retry.reasons[0], SL_STR("line break tab ")));
    assert_true(sl_str_eq(g.retry.reasons[1], SL_STR("half a letter ?")));
    assert_int_equal(g.retry.reasons[2].n, 500);
    assert_null(g.retry.reasons[3].p);
}

static void make_unsettled(void)
{
    sl_batch_add(&batch);
    make();
}

static void a_message_without_a_verdict_is_a_mistake(void **state)
{
    (void)state;
    assert_true(aborts(make_unsettled));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_goes_to_its_group, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_batch_has_empty_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(a_delay_is_the_sinks_or_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reason_can_be_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(a_message_without_a_verdict_is_a_mistake, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
