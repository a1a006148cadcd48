/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "capture.h"

static sl_findings all;

static int teardown(void **state)
{
    (void)state;
    sl_findings_fini(&all);
    return 0;
}

static void findings_are_kept(void **state)
{
    (void)state;
    assert_int_equal(sl_findings_worst(&all), SL_FINE);
    sl_found(&all, SL_FINE, "a", "%d of %d", 1, 2);
    sl_found(&all, SL_UNSEEN, "b", "x");
    assert_int_equal(sl_findings_worst(&all), SL_UNSEEN);
    sl_found(&all, SL_WARN, "c", "y");
    sl_advise(&all, "do %s", "z");
    assert_int_equal(sl_findings_worst(&all), SL_WARN);
    sl_found(&all, SL_BAD, "d", "y");
    assert_int_equal(sl_findings_worst(&all), SL_BAD);
    assert_int_equal(sl_findings_of(&all, SL_FINE), 1);
    assert_int_equal(sl_findings_of(&all, SL_BAD), 1);
    assert_string_equal(all.v[0].found, "1 of 2");
    assert_null(all.v[0].todo);
    assert_string_equal(all.v[2].todo, "do z");
    for (int i = 0; i < 100; i++)
        sl_found(&all, SL_FINE, "more", "%d", i);
    assert_int_equal(all.count, 104);
    assert_string_equal(all.v[103].found, "99");
}

static void what_could_not_be_seen_says_why(void **state)
{
    (void)state;
    sl_err err = { 0 };
    (void)!sl_fail(&err, SL_OPERATOR, "permission denied\nhint: grant it");
    sl_found_unseen(&all, "x", &err);
    (void)!sl_fail(&err, SL_OPERATOR, "no answer");
    sl_found_unseen(&all, "y", &err);
    assert_int_equal(all.v[0].state, SL_UNSEEN);
    assert_string_equal(all.v[0].found, "permission denied");
    assert_string_equal(all.v[0].todo, "grant it");
    assert_string_equal(all.v[1].found, "no answer");
    assert_null(all.v[1].todo);
}

static void json_has_one_shape(void **state)
{
    (void)state;
    sl_buf out = { 0 };
    sl_findings_json(&all, "outbox", &out);
    assert_string_equal(sl_buf_text(&out),
                        "{\"table\":\"outbox\",\"state\":\"ok\",\"ok\":0,\"warn\":0,\"bad\":0,"
                        "\"unknown\":0,\"findings\":[]}");
    sl_found(&all, SL_FINE, "a", "fine");
    sl_found(&all, SL_BAD, "b", "a \"quoted\"\nthing");
    sl_advise(&all, "mend it");
    sl_buf_reset(&out);
    sl_findings_json(&all, "app.out", &out);
    assert_string_equal(
        sl_buf_text(&out),
        "{\"table\":\"app.out\",\"state\":\"bad\",\"ok\":1,\"warn\":0,\"bad\":1,\"unknown\":0,"
        "\"findings\":[{\"state\":\"ok\",\"check\":\"a\",\"found\":\"fine\",\"do\":null},"
        "{\"state\":\"bad\",\"check\":\"b\",\"found\":\"a "
        "\\\"quoted\\\"\\nthing\",\"do\":\"mend "
        "it\"}]}");
    sl_buf_fini(&out);
}

static const char *printed(size_t width)
{
    static capture c;
    capture_begin(&c, stdout);
    sl_findings_print(&all, width, stdout);
    return capture_end(&c);
}

static void the_table_lines_up(void **state)
{
    (void)state;
    sl_found(&all, SL_FINE, "schema", "version 2");
    sl_found(&all, SL_BAD, "file", "not there");
    sl_advise(&all, "make it");
    const char *wide = "  state  check   found      what to do\n"
                       "  ok     schema  version 2\n"
                       "  bad    file    not there  make it\n"
                       "\n1 bad, 0 warn, 0 unknown, 1 ok\n";
    assert_string_equal(printed(0), wide);
    assert_string_equal(printed(80), wide);
}

/* Nothing is cut: what does not fit goes on below, under its column. */
static void a_narrow_terminal_gets_all_of_it(void **state)
{
    (void)state;
    sl_found(&all, SL_WARN, "keys", "one two three four five six seven eight nine ten");
    sl_advise(&all, "a_word_that_is_much_longer_than_the_room_that_there_is");
    assert_string_equal(printed(40), "  state  check  found, and what to do\n"
                                     "  warn   keys   one two three four five six\n"
                                     "                seven eight nine ten ->\n"
                                     "                a_word_that_is_much_longer_tha\n"
                                     "                n_the_room_that_there_is\n"
                                     "\n0 bad, 1 warn, 0 unknown, 0 ok\n");
    assert_string_equal(printed(60),
                        "  state  check  found, and what to do\n"
                        "  warn   keys   one two three four five six seven eight nine\n"
                        "                ten ->\n"
                        "                a_word_that_is_much_longer_than_the_room_tha\n"
                        "                t_there_is\n"
                        "\n0 bad, 1 warn, 0 unknown, 0 ok\n");
}

static void expect_bytes(int64_t bytes, const char *want)
{
    sl_buf out = { 0 };
    sl_put_bytes(&out, bytes);
    assert_string_equal(sl_buf_text(&out), want);
    sl_buf_fini(&out);
}

static void bytes_are_for_people(void **state)
{
    (void)state;
    expect_bytes(0, "0 bytes");
    expect_bytes(1023, "1023 bytes");
    expect_bytes(1024, "1.0 kB");
    expect_bytes(64 * 1024, "64 kB");
    expect_bytes(INT64_C(3) << 29, "1.5 GB");
    expect_bytes(INT64_C(5) << 50, "5120 TB");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_teardown(fn, teardown)
    const struct CMUnitTest tests[] = {
        TEST(findings_are_kept),    TEST(what_could_not_be_seen_says_why),
        TEST(json_has_one_shape),   TEST(the_table_lines_up),
        TEST(bytes_are_for_people), TEST(a_narrow_terminal_gets_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
