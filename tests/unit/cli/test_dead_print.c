/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dead_print.h"

#include "capture.h"

static sl_val text_of(const char *s)
{
    return sl_text(sl_str_of(s));
}

/* ---- list ---- */

static void add(sl_dead_page *p, int64_t dead_id, const char *key, const char *error)
{
    sl_err err = { 0 };
    const sl_val cols[] = { sl_int(dead_id),
                            sl_int(dead_id * 10),
                            text_of("orders"),
                            text_of(key),
                            text_of(NULL),
                            sl_int(3),
                            text_of("2026-01-02T03:04:05.678Z"),
                            sl_int(INT64_C(312000000)),
                            text_of(error),
                            sl_int(17),
                            { .type = SL_T_BOOL, .i = dead_id == 100 || dead_id == 2 } };
    assert_int_equal(sl_dead_page_row(p, cols, &err), SL_OK);
}

static const char *printed(sl_dead_page *p)
{
    static capture c;
    capture_begin(&c, stdout);
    sl_dead_page_print(p, stdout);
    sl_dead_page_fini(p);
    return capture_end(&c);
}

static void a_list_lines_up(void **state)
{
    (void)state;
    sl_dead_page p = { .table = "outbox", .counts = { 17, 17 } };
    sl_dead_page_begin(&p, false);
    p.width = 0; /* whatever the test runs on */
    add(&p, 100, "order:9182", "no\nroute");
    add(&p, 9, NULL, NULL);
    assert_string_equal(
        printed(&p), "  dead_id    id  topic   key         attempts    age  sent   error\n"
                     "      100  1000  orders  order:9182         3  5m12s  maybe  no?route\n"
                     "        9    90  orders  -                  3  5m12s  -      -\n"
                     "\n"
                     "17 dead letters in table outbox; the newest 2 are shown\n");
}

static void a_narrow_terminal_cuts_the_error(void **state)
{
    (void)state;
    sl_dead_page p = { .table = "outbox", .counts = { 1, 1 } };
    sl_dead_page_begin(&p, false);
    p.width = 76;
    add(&p, 1, "k", "0123456789012345678901234567890123456789");
    assert_non_null(strstr(printed(&p), "  0123456789012345678901...\n"));
}

static void expect_counts(int64_t matching, int64_t total, bool filtered, const char *want)
{
    sl_dead_page p = { .table = "outbox", .filtered = filtered, .counts = { matching, total } };
    sl_dead_page_begin(&p, false);
    for (int64_t i = 0; i < matching; i++)
        add(&p, i + 1, "k", "e");
    const char *got = printed(&p);
    const char *behind = strstr(got, "\n\n");
    assert_string_equal(behind ? behind + 2 : got, want);
}

static void all_are_counted(void **state)
{
    (void)state;
    expect_counts(0, 0, false, "no dead letters in table outbox\n");
    expect_counts(0, 0, true, "no dead letters in table outbox\n");
    expect_counts(1, 1, false, "1 dead letter in table outbox\n");
    expect_counts(2, 2, false, "2 dead letters in table outbox\n");
    expect_counts(0, 2, true, "0 of 2 dead letters of table outbox match\n");
    expect_counts(1, 2, true, "1 of 2 dead letters of table outbox matches\n");
}

static void a_list_as_json(void **state)
{
    (void)state;
    sl_dead_page p = { .table = "out\"box", .counts = { 2, 5 } };
    sl_dead_page none = { .table = "outbox" };
    sl_dead_page_begin(&p, true);
    add(&p, 2, "k\n", "e");
    add(&p, 1, NULL, NULL);
    assert_string_equal(printed(&p),
                        "{\"table\":\"out\\\"box\",\"total\":5,\"matching\":2,\"dead_letters\":"
                        "[{\"dead_id\":2,\"id\":20,\"topic\":"
                        "\"orders\",\"key\":\"k\\n\",\"type\":\"\",\"attempts\":3,\"died_at\":"
                        "\"2026-01-02T03:04:05.678Z\","
                        "\"age_seconds\":312.000,\"error\":\"e\",\"payload_bytes\":17,"
                        "\"unknown\":true},{\"dead_id\":1,\"id\":10,\"topic\":\"orders\","
                        "\"key\":null,\"type\":\"\",\"attempts\":3,\"died_at\":\"2026-01-02T03:"
                        "04:05.678Z\",\"age_seconds\":312.000,"
                        "\"error\":null,\"payload_bytes\":17,\"unknown\":false}]}\n");
    sl_dead_page_begin(&none, true);
    assert_string_equal(
        printed(&none),
        "{\"table\":\"outbox\",\"total\":0,\"matching\":0,\"dead_letters\":[]}\n");
}

/* ---- show ---- */

static const char *shown(sl_row_fn fn, sl_str payload, const char *type)
{
    static char text[2048];
    sl_err err = { 0 };
    sl_buf out = { 0 };
    const sl_val cols[] = { sl_int(7),
                            sl_int(70),
                            text_of("orders"),
                            text_of("k\033"),
                            text_of("paid"),
                            { .type = SL_T_BYTES, .null = !payload.p, .s = payload },
                            text_of(type),
                            text_of("{\"a\":\"1\"}"),
                            text_of("i"),
                            text_of("2026-01-02T03:04:05.678Z"),
                            text_of("2026-01-02T03:04:06.000Z"),
                            sl_int(1500000),
                            sl_int(3),
                            text_of("why"),
                            sl_int(9),
                            { .type = SL_T_BOOL, .i = 1 } };
    assert_int_equal(fn(&out, cols, &err), SL_OK);
    snprintf(text, sizeof text, "%s", sl_buf_text(&out));
    sl_buf_fini(&out);
    return text;
}

static void one_for_people(void **state)
{
    (void)state;
    assert_string_equal(shown(sl_dead_show_text, SL_STR("{\"n\":1}"), "application/json"),
                        "dead_id          7\n"
                        "id               70\n"
                        "topic            orders\n"
                        "key              k?\n"
                        "type             paid\n"
                        "content_type     application/json\n"
                        "idempotency_key  i\n"
                        "created_at       2026-01-02T03:04:05.678Z\n"
                        "died_at          2026-01-02T03:04:06.000Z, 1.5 s ago\n"
                        "attempts         3\n"
                        "error            why\n"
                        "epoch            9\n"
                        "sent             maybe\n"
                        "headers          {\"a\":\"1\"}\n"
                        "payload          {\"n\":1}\n");
    assert_non_null(strstr(shown(sl_dead_show_text, SL_STR("a: b\n"), "text/plain"),
                           "\npayload          \"a: b\\n\"\n"));
    assert_non_null(strstr(shown(sl_dead_show_text, SL_STR("\xff"), "x/y"),
                           "\npayload_base64   \"/w==\"\n"));
    assert_non_null(
        strstr(shown(sl_dead_show_text, SL_NONE, NULL), "\npayload          null\n"));
    assert_non_null(strstr(shown(sl_dead_show_text, SL_NONE, NULL), "\ncontent_type     -\n"));
}

static void one_as_json(void **state)
{
    (void)state;
    assert_string_equal(shown(sl_dead_show_json, SL_STR("{\"n\":1}"), "application/json"),
                        "{\"dead_id\":7,\"id\":70,\"topic\":\"orders\",\"key\":\"k\\u001b\","
                        "\"type\":\"paid\",\"payload\":{\"n\":1},"
                        "\"headers\":{\"a\":\"1\"},\"idempotency_key\":\"i\",\"created_at\":"
                        "\"2026-01-02T03:04:05.678Z\",\"died_at\":"
                        "\"2026-01-02T03:04:06.000Z\",\"age_seconds\":1.500,\"attempts\":3,"
                        "\"error\":\"why\",\"epoch\":9,\"unknown\":true}\n");
    assert_non_null(strstr(shown(sl_dead_show_json, SL_STR("\xff"), "x/y"),
                           "\"content_type\":\"x/y\",\"payload_base64\":\"/w==\",\"headers\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_lines_up), cmocka_unit_test(a_narrow_terminal_cuts_the_error),
        cmocka_unit_test(all_are_counted), cmocka_unit_test(a_list_as_json),
        cmocka_unit_test(one_for_people),  cmocka_unit_test(one_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
