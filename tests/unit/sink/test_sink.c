/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/sink/sinks.h"

static void a_sink_is_found_by_its_scheme(void **state)
{
    (void)state;
    const char *const urls[] = { "null:", "NULL:" };
    for (size_t i = 0; i < COUNT(urls); i++) {
        sl_sink *s = open_sink(urls[i], "w");
        assert_string_equal(s->ops->scheme, "null");
        close_sink(s);
    }
}

static void an_unknown_scheme_is_refused_with_what_there_is(void **state)
{
    (void)state;
    refuse_sink("carrier-pigeon://x", SL_REFUSED, "unknown sink \"carrier-pigeon\"\nhint: ");
    for (const sl_sink_ops *const *ops = sl_sink_all; *ops; ops++)
        refuse_sink("carrier-pigeon://x", SL_REFUSED, (*ops)->example);
}

static void a_slip_is_answered_with_the_nearest(void **state)
{
    (void)state;
    refuse_sink("nul:", SL_REFUSED, "hint: did you mean null:? this build has ");
}

static void a_url_without_a_scheme_is_refused(void **state)
{
    (void)state;
    refuse_sink("out.jsonl", SL_REFUSED, "sink without a scheme: \"out.jsonl\"\nhint: ");
    refuse_sink("", SL_REFUSED, "sink without a scheme: \"\"\nhint: this build has ");
    refuse_sink(NULL, SL_REFUSED, "sink without a scheme: \"\"\nhint: this build has ");
    refuse_sink(":x", SL_REFUSED, "unknown sink \"\"\nhint: this build has ");
}

static void nothing_but_the_scheme_is_repeated(void **state)
{
    (void)state;
    sl_sink *s = NULL;
    sl_err err = { 0 };
    sl_sink_conf conf = { .url = "pigeon://user:canary@host", .worker = "w" };
    assert_int_equal(sl_sink_open(&s, &conf, &err), SL_REFUSED);
    assert_null(strstr(err.text, "canary"));
}

static void every_table_is_complete(void **state)
{
    (void)state;
    for (const sl_sink_ops *const *ops = sl_sink_all; *ops; ops++) {
        const sl_sink_ops *o = *ops;
        assert_true(o->open && o->submit && o->poll && o->recall && o->close);
        size_t n = strlen(o->scheme);
        assert_int_equal(strncmp(o->example, o->scheme, n), 0);
        assert_int_equal(o->example[n], ':');
        for (const sl_sink_ops *const *other = ops + 1; *other; other++)
            assert_string_not_equal(o->scheme, (*other)->scheme);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sink_is_found_by_its_scheme),
        cmocka_unit_test(an_unknown_scheme_is_refused_with_what_there_is),
        cmocka_unit_test(a_slip_is_answered_with_the_nearest),
        cmocka_unit_test(a_url_without_a_scheme_is_refused),
        cmocka_unit_test(nothing_but_the_scheme_is_repeated),
        cmocka_unit_test(every_table_is_complete),
    };
    return has_sink("null") ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
