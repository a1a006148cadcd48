/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "unit/unit.h"

static sl_msg a_message(void)
{
    return (sl_msg){
        .id = 1,
        .epoch = 7,
        .attempt = 1,
        .topic = SL_STR("orders"),
        .key = SL_STR("order:9182"),
        .type = SL_STR(""),
        .content_type = SL_STR("application/json"),
        .headers = SL_NONE,
        .payload = SL_STR("{\"paid\":true}"),
    };
}

static void expect(const sl_msg *m, const char *worker, const char *extra, const char *line)
{
    sl_buf b = { 0 };
    sl_format_line(&b, m, worker, extra);
    assert_string_equal(sl_buf_text(&b), line);
    assert_int_equal(b.n, strlen(line));
    assert_true(sl_is_json((sl_str){ b.p, b.n }));
    assert_ptr_equal(memchr(b.p, '\n', b.n), b.p + b.n - 1);
    sl_buf_fini(&b);
}

/* The part of the line from the type to the headers. */
static void expect_payload(const sl_msg *m, const char *middle)
{
    sl_buf b = { 0 };
    sl_buf_printf(&b,
                  "{\"id\":1,\"topic\":\"orders\",\"key\":\"order:9182\",\"type\":\"\"%s"
                  ",\"headers\":{},\"attempt\":1,\"worker\":\"n1/2\",\"epoch\":7}\n",
                  middle);
    expect(m, "n1/2", NULL, sl_buf_text(&b));
    sl_buf_fini(&b);
}

static void a_line_looks_as_documented(void **state)
{
    (void)state;
    sl_msg m = a_message();
    expect(&m, "n1/2", NULL,
           "{\"id\":1,\"topic\":\"orders\",\"key\":\"order:9182\",\"type\":\"\","
           "\"payload\":{\"paid\":true},\"headers\":{},\"attempt\":1,\"worker\":\"n1/2\","
           "\"epoch\":7}\n");
}

static void parts_of_a_line_stand_alone(void **state)
{
    (void)state;
    sl_msg m = a_message();
    sl_buf b = { 0 };
    sl_format_members(&b, &m);
    assert_string_equal(sl_buf_text(&b),
                        "\"topic\":\"orders\",\"key\":\"order:9182\",\"type\":\"\","
                        "\"payload\":{\"paid\":true},\"headers\":{}");
    sl_buf_reset(&b);
    sl_format_payload(&b, &m);
    assert_string_equal(sl_buf_text(&b), "\"payload\":{\"paid\":true}");
    sl_buf_fini(&b);
}

static void every_member_is_filled_and_escaped(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.id = INT64_MIN;
    m.epoch = INT64_MAX;
    m.attempt = INT32_MAX;
    m.topic = SL_STR("a\"b");
    m.key = SL_STR("k\n\xff");
    m.type = SL_STR("\xc3\xbc");
    m.headers = SL_STR("{\"traceparent\":\n\"00-ab\"}");
    expect(&m, "n\\1", ",\"receipt\":\"12:7\"",
           "{\"id\":-9223372036854775808,\"topic\":\"a\\\"b\",\"key\":\"k\\n\xef\xbf\xbd\","
           "\"type\":\"\xc3\xbc\",\"payload\":{\"paid\":true},"
           "\"headers\":{\"traceparent\": \"00-ab\"},\"attempt\":2147483647,"
           "\"worker\":\"n\\\\1\",\"epoch\":9223372036854775807,\"receipt\":\"12:7\"}\n");
}

static void what_is_absent_is_null_or_empty(void **state)
{
    (void)state;
    sl_msg m = { .id = 0 };
    expect(
        &m, NULL, NULL,
        "{\"id\":0,\"topic\":\"\",\"key\":null,\"type\":\"\",\"payload\":null,\"headers\":{},"
        "\"attempt\":0,\"worker\":\"\",\"epoch\":0}\n");
    m.key = SL_STR("");
    expect(
        &m, "", "",
        "{\"id\":0,\"topic\":\"\",\"key\":\"\",\"type\":\"\",\"payload\":null,\"headers\":{},"
        "\"attempt\":0,\"worker\":\"\",\"epoch\":0}\n");
}

static void a_payload_of_json_is_embedded_as_it_is_spelled(void **state)
{
    (void)state;
    const char *const payloads[] = { "null",   "true",
                                     "1.50",   "123456789012345678901234567890",
                                     "1e999",  "\"text\"",
                                     "[1, 2]", "{\"a\":1,\"a\":2}",
                                     " {} ",   "\"\\u0000\\ud800\"" };
    for (size_t i = 0; i < COUNT(payloads); i++) {
        sl_msg m = a_message();
        sl_buf middle = { 0 };
        m.payload = sl_str_of(payloads[i]);
        sl_buf_printf(&middle, ",\"payload\":%s", payloads[i]);
        expect_payload(&m, sl_buf_text(&middle));
        m.content_type = SL_NONE; /* an adopted table without that column */
        expect_payload(&m, sl_buf_text(&middle));
        sl_buf_fini(&middle);
    }
}

static void a_pretty_payload_becomes_one_line(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.payload = SL_STR("{\r\n  \"a\": \"x\\ny\",\n\t\"b\": 2\n}\n");
    expect_payload(&m, ",\"payload\":{    \"a\": \"x\\ny\", \t\"b\": 2 } ");
}

static void other_json_types_are_named(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.content_type = SL_STR("application/cloudevents+json");
    expect_payload(&m, ",\"content_type\":\"application/cloudevents+json\","
                       "\"payload\":{\"paid\":true}");
}

static void text_is_a_string(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.content_type = SL_STR("text/plain");
    expect_payload(&m, ",\"content_type\":\"text/plain\",\"payload\":\"{\\\"paid\\\":true}\"");
    m.payload = SL_STR("");
    expect_payload(&m, ",\"content_type\":\"text/plain\",\"payload\":\"\"");
    m.payload = SL_STR("a\0b\n");
    expect_payload(&m, ",\"content_type\":\"text/plain\",\"payload\":\"a\\u0000b\\n\"");
    m.content_type = SL_STR("application/json");
    m.payload = SL_STR("{not json");
    expect_payload(&m, ",\"payload\":\"{not json\"");
}

static void other_bytes_are_base64(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.payload = SL_STR("\xff\0\xfe");
    expect_payload(&m, ",\"payload_base64\":\"/wD+\"");
    m.content_type = SL_STR("application/x-protobuf");
    expect_payload(&m,
                   ",\"content_type\":\"application/x-protobuf\",\"payload_base64\":\"/wD+\"");
}

static void headers_that_are_no_object_do_not_break_the_line(void **state)
{
    (void)state;
    const struct {
        sl_str headers;
        const char *shown;
    } cases[] = {
        { SL_STR(""), "{}" },
        { SL_STR(" {\"a\":\"b\"}"), " {\"a\":\"b\"}" },
        { SL_STR("{\"a\":"), "\"{\\\"a\\\":\"" },
        { SL_STR("[{}]"), "\"[{}]\"" },
        { SL_STR("a=b\nc=d"), "\"a=b\\nc=d\"" },
        { SL_STR("\0{}"), "\"\\u0000{}\"" },
        { SL_STR(" "), "\" \"" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_msg m = { .headers = cases[i].headers, .payload = SL_STR("1") };
        sl_buf line = { 0 };
        sl_buf_printf(&line,
                      "{\"id\":0,\"topic\":\"\",\"key\":null,\"type\":\"\",\"payload\":1,"
                      "\"headers\":%s,\"attempt\":0,\"worker\":\"w\",\"epoch\":0}\n",
                      cases[i].shown);
        expect(&m, "w", NULL, sl_buf_text(&line));
        sl_buf_fini(&line);
    }
}

static void lines_are_appended(void **state)
{
    (void)state;
    sl_msg m = { .payload = SL_STR("1") };
    sl_buf b = { 0 };
    for (int i = 0; i < 3; i++)
        sl_format_line(&b, &m, "w", NULL);
    size_t ends = 0;
    for (size_t i = 0; i < b.n; i++)
        ends += b.p[i] == '\n';
    assert_int_equal(ends, 3);
    sl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_looks_as_documented),
        cmocka_unit_test(parts_of_a_line_stand_alone),
        cmocka_unit_test(every_member_is_filled_and_escaped),
        cmocka_unit_test(what_is_absent_is_null_or_empty),
        cmocka_unit_test(a_payload_of_json_is_embedded_as_it_is_spelled),
        cmocka_unit_test(a_pretty_payload_becomes_one_line),
        cmocka_unit_test(other_json_types_are_named),
        cmocka_unit_test(text_is_a_string),
        cmocka_unit_test(other_bytes_are_base64),
        cmocka_unit_test(headers_that_are_no_object_do_not_break_the_line),
        cmocka_unit_test(lines_are_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
