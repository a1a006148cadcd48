/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/policy.h"

#include "core/clock.h"
#include "unit/unit.h"

static sl_batch batch;
static sl_msg *m;

static int setup(void **state)
{
    (void)state;
    sl_batch_init(&batch);
    m = sl_batch_add(&batch);
    m->attempt = 1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sl_batch_fini(&batch);
    return 0;
}

static sl_policy policy(sl_on_failure how)
{
    return (sl_policy){ how, 3, SL_SEC, 8 * SL_SEC };
}

static void judge(sl_on_failure how, int32_t attempt, sl_verdict said)
{
    sl_policy p = policy(how);
    if (m->verdict != SL_PENDING)
        sl_msg_unsettle(&batch, m);
    m->attempt = attempt;
    sl_msg_settle(&batch, m, said, SL_STR("why"));
    sl_policy_judge(&p, &batch, m);
    assert_int_equal(batch.settled, 1);
    if (m->verdict != SL_SENT)
        assert_string_equal(m->reason.p, "why");
}

static void sent_is_sent(void **state)
{
    (void)state;
    for (sl_on_failure how = SL_BLOCK; how <= SL_SKIP; how++) {
        judge(how, 99, SL_SENT);
        assert_int_equal(m->verdict, SL_SENT);
    }
}

static void delays_grow_until_no_attempt_is_left(void **state)
{
    (void)state;
    judge(SL_PARK, 1, SL_RETRY);
    assert_in_range(m->delay_ns, SL_SEC * 8 / 10, SL_SEC * 12 / 10);
    judge(SL_PARK, 2, SL_UNKNOWN);
    assert_int_equal(m->verdict, SL_UNKNOWN);
    assert_in_range(m->delay_ns, 2 * SL_SEC * 8 / 10, 2 * SL_SEC * 12 / 10);
}

static void the_sinks_wish_goes_first(void **state)
{
    (void)state;
    sl_policy p = policy(SL_PARK);
    sl_msg_settle(&batch, m, SL_RETRY, SL_NONE);
    m->delay_ns = 77;
    sl_policy_judge(&p, &batch, m);
    assert_int_equal(m->delay_ns, 77);
}

static void with_none_left_the_policy_decides(void **state)
{
    (void)state;
    judge(SL_BLOCK, 3, SL_RETRY);
    assert_int_equal(m->verdict, SL_RETRY);
    assert_in_range(m->delay_ns, 8 * SL_SEC * 8 / 10, 8 * SL_SEC * 12 / 10);
    judge(SL_PARK, 3, SL_UNKNOWN);
    assert_int_equal(m->verdict, SL_UNKNOWN);
    assert_true(m->delay_ns == SL_FOREVER);
    judge(SL_SKIP, 3, SL_RETRY);
    assert_int_equal(m->verdict, SL_DEAD);
    judge(SL_SKIP, 2, SL_RETRY);
    assert_int_equal(m->verdict, SL_RETRY);
}

/* It wastes no attempts; block means park. */
static void what_is_refused_is_not_tried_again(void **state)
{
    (void)state;
    for (sl_on_failure how = SL_BLOCK; how <= SL_PARK; how++) {
        judge(how, 1, SL_DEAD);
        assert_int_equal(m->verdict, SL_RETRY);
        assert_true(m->delay_ns == SL_FOREVER);
    }
    judge(SL_SKIP, 1, SL_DEAD);
    assert_int_equal(m->verdict, SL_DEAD);
}

static void a_programs_own_decision_stands(void **state)
{
    (void)state;
    m->buried = true;
    judge(SL_BLOCK, 1, SL_DEAD);
    assert_int_equal(m->verdict, SL_DEAD);
}

static void who_waits_for_it(void **state)
{
    (void)state;
    static const struct {
        sl_verdict verdict;
        bool waits[3]; /* block, park, skip */
    } cases[] = { { SL_SENT, { false, false, false } },
                  { SL_RETRY, { true, true, true } },
                  { SL_UNKNOWN, { true, true, true } },
                  { SL_RELEASED, { true, true, true } },
                  { SL_DEAD, { true, true, false } } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (sl_on_failure how = SL_BLOCK; how <= SL_SKIP; how++) {
            sl_policy p = policy(how);
            m->verdict = cases[i].verdict;
            m->consumed = false;
            assert_int_equal(sl_policy_waits(&p, m), cases[i].waits[how]);
            m->consumed = true; /* never again: nobody waits for it, unless it was not tried */
            assert_int_equal(sl_policy_waits(&p, m), cases[i].verdict == SL_RELEASED);
        }
}

static bool spent(sl_on_failure how, int32_t attempt)
{
    sl_policy p = policy(how);
    if (m->verdict != SL_PENDING)
        sl_msg_unsettle(&batch, m);
    m->attempt = attempt;
    return sl_policy_spent(&p, &batch, m);
}

/* Counted before each send, and never answered. */
static void what_ends_the_program_runs_out_of_attempts(void **state)
{
    (void)state;
    assert_false(spent(SL_SKIP, 3));
    assert_int_equal(m->verdict, SL_PENDING);
    assert_true(spent(SL_SKIP, 4));
    assert_int_equal(m->verdict, SL_DEAD);
    assert_true(m->untried);
    assert_string_equal(m->reason.p,
                        "3 deliveries were begun, and the program ended before the answer");
    assert_true(spent(SL_PARK, 4));
    assert_int_equal(m->verdict, SL_RETRY);
    assert_true(m->delay_ns == SL_FOREVER);
    assert_false(spent(SL_BLOCK, 4)); /* it keeps trying */
    m->counted = true;                /* after a crash */
    assert_true(spent(SL_BLOCK, 4));
    assert_in_range(m->delay_ns, 8 * SL_SEC * 8 / 10, 8 * SL_SEC * 12 / 10);
    m->held = true; /* that time is over */
    assert_false(spent(SL_BLOCK, 5));
}

/* The sink gave no answer to anybody: it comes again, however often that happens. */
static void an_outage_is_nobodys_fault(void **state)
{
    (void)state;
    m->blameless = true;
    for (sl_on_failure how = SL_BLOCK; how <= SL_SKIP; how++) {
        m->untried = false;
        judge(how, 99, SL_UNKNOWN);
        assert_int_equal(m->verdict, SL_UNKNOWN);
        assert_true(m->untried);
        assert_in_range(m->delay_ns, SL_SEC * 8 / 10, SL_SEC * 12 / 10);
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(sent_is_sent),
        TEST(delays_grow_until_no_attempt_is_left),
        TEST(the_sinks_wish_goes_first),
        TEST(with_none_left_the_policy_decides),
        TEST(what_is_refused_is_not_tried_again),
        TEST(a_programs_own_decision_stands),
        TEST(who_waits_for_it),
        TEST(what_ends_the_program_runs_out_of_attempts),
        TEST(an_outage_is_nobodys_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
