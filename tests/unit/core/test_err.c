/* SPDX-License-Identifier: Apache-2.0 */
#include "core/err.h"

#include "unit/unit.h"

static void fail_fills_and_returns(void **state)
{
    (void)state;
    sl_err err = { 0 };
    assert_int_equal(sl_fail(&err, SL_REFUSED, "topic '%s': %d bytes", "orders", 7),
                     SL_REFUSED);
    assert_int_equal(err.rc, SL_REFUSED);
    assert_string_equal(err.text, "topic 'orders': 7 bytes");
    assert_int_equal(sl_fail(NULL, SL_AGAIN, "nobody listens"), SL_AGAIN);
}

static void line_ends_of_other_libraries_are_cut_off(void **state)
{
    (void)state;
    sl_err err = { 0 };
    (void)sl_fail(&err, SL_AGAIN, "%s", "server closed the connection\n\thint: look\n \n");
    assert_string_equal(err.text, "server closed the connection\n\thint: look");
    (void)sl_fail(&err, SL_AGAIN, "%s", "\n");
    assert_string_equal(err.text, "");
}

static void a_long_text_is_cut_not_overrun(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct {
        sl_err err;
        char guard[8];
    } s = { .guard = "guarded" };
    (void)sl_fail(&s.err, SL_AGAIN, "%s", text);
    assert_int_equal(strlen(s.err.text), sizeof s.err.text - 1);
    (void)sl_fail_in(&s.err, "%s", text);
    assert_int_equal(strlen(s.err.text), sizeof s.err.text - 1);
    assert_string_equal(s.guard, "guarded");
}

static void context_goes_before_the_text(void **state)
{
    (void)state;
    sl_err err = { 0 };
    (void)sl_fail(&err, SL_OPERATOR, "no such table");
    assert_int_equal(sl_fail_in(&err, "worker %d", 3), SL_OPERATOR);
    assert_int_equal(sl_fail_in(&err, "node %s", "n1"), SL_OPERATOR);
    assert_string_equal(err.text, "node n1: worker 3: no such table");
}

static void every_code_has_a_name(void **state)
{
    (void)state;
    for (sl_rc rc = SL_OK; rc <= SL_STOPPED; rc++) {
        assert_non_null(sl_rc_name(rc));
        assert_string_not_equal(sl_rc_name(rc), "?");
    }
    assert_string_equal(sl_rc_name(SL_AGAIN), "again");
    assert_string_equal(sl_rc_name((sl_rc)(SL_STOPPED + 1)), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_fills_and_returns),
        cmocka_unit_test(line_ends_of_other_libraries_are_cut_off),
        cmocka_unit_test(a_long_text_is_cut_not_overrun),
        cmocka_unit_test(context_goes_before_the_text),
        cmocka_unit_test(every_code_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
