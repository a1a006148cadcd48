/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/format/encoded.h"

#include <stdio.h>

#define TRACEPARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define SEQUENCE "ce_sequence=0000000000000000042\n"
#define HEAD "ce_specversion=1.0\nce_id=42\nce_source=/shop\nce_type=paid\n"
#define TIME "ce_time=2023-11-14T22:13:20.123456Z\n"
#define KEY "ce_partitionkey=order:9182\n"
#define TAIL "content-type=application/json\nsluice-epoch=7\n"

#define J_HEAD "{\"specversion\":\"1.0\",\"id\":\"42\",\"source\":\"/shop\",\"type\":\"paid\","
#define J_TIME "\"time\":\"2023-11-14T22:13:20.123456Z\","
#define J_KEY "\"partitionkey\":\"order:9182\","
#define J_SEQUENCE "\"sequence\":\"0000000000000000042\","
#define J_TYPE(type) "\"datacontenttype\":\"" type "\""
#define J_TAIL                                                                                 \
    "sluice-id=42\nsluice-epoch=7\ncontent-type=application/cloudevents+json; charset=UTF-8\n"

static void attributes_are_headers(void **state)
{
    (void)state;
    sl_msg m = a_message();
    expect_encoded("cloudevents", &m, "{\"paid\":true}", HEAD TIME KEY SEQUENCE TAIL);
}

static void attributes_are_members(void **state)
{
    (void)state;
    sl_msg m = a_message();
    expect_encoded(
        "cloudevents-json", &m,
        J_HEAD J_TIME J_KEY J_SEQUENCE J_TYPE("application/json") ",\"data\":{\"paid\":true}}",
        J_TAIL);
}

static void no_data_is_a_tombstone_or_an_event_without(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.payload = SL_NONE;
    expect_encoded("cloudevents", &m, NULL, HEAD TIME KEY SEQUENCE TAIL);
    expect_encoded("cloudevents-json", &m,
                   J_HEAD J_TIME J_KEY J_SEQUENCE J_TYPE("application/json") "}", J_TAIL);
}

static void what_is_optional_is_left_out(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.key = SL_NONE;
    m.created_us = 0;
    m.type = SL_STR("");
    expect_encoded(
        "cloudevents", &m, "{\"paid\":true}",
        "ce_specversion=1.0\nce_id=42\nce_source=/shop\nce_type=orders\n" SEQUENCE TAIL);
    m.key = SL_STR("");
    m.type = SL_NONE;
    m.content_type = SL_NONE;
    expect_encoded(
        "cloudevents", &m, "{\"paid\":true}",
        "ce_specversion=1.0\nce_id=42\nce_source=/shop\nce_type=orders\n" SEQUENCE TAIL);
}

static void a_trace_goes_along_if_it_is_valid(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.headers = SL_STR("{\"traceparent\":\"" TRACEPARENT "\",\"tracestate\":\"a=b\"}");
    expect_encoded("cloudevents", &m, "{\"paid\":true}",
                   "traceparent=" TRACEPARENT "\ntracestate=a=b\n" HEAD TIME KEY SEQUENCE
                   "ce_traceparent=" TRACEPARENT "\nce_tracestate=a=b\n" TAIL);
    expect_encoded("cloudevents-json", &m,
                   J_HEAD J_TIME J_KEY J_SEQUENCE
                   "\"traceparent\":\"" TRACEPARENT "\",\"tracestate\":\"a=b\"," J_TYPE(
                       "application/json") ",\"data\":{\"paid\":true}}",
                   "traceparent=" TRACEPARENT "\ntracestate=a=b\n" J_TAIL);
    m.headers = SL_STR("{\"traceparent\":\"00-x\",\"tracestate\":\"a=b\"}");
    expect_encoded("cloudevents", &m, "{\"paid\":true}",
                   "traceparent=00-x\ntracestate=a=b\n" HEAD TIME KEY SEQUENCE TAIL);
    m.headers = SL_STR("{\"traceparent\":null,\"tracestate\":\"a=b\"}");
    expect_encoded("cloudevents", &m, "{\"paid\":true}",
                   "traceparent\ntracestate=a=b\n" HEAD TIME KEY SEQUENCE TAIL);
    m.headers = SL_STR("{\"traceparent\":\"" TRACEPARENT "\",\"tracestate\":null}");
    expect_encoded("cloudevents", &m, "{\"paid\":true}",
                   "traceparent=" TRACEPARENT "\ntracestate\n" HEAD TIME KEY SEQUENCE
                   "ce_traceparent=" TRACEPARENT "\n" TAIL);
}

/* A producer may add attributes of its own; ours are not to be had twice. */
static void the_producers_other_headers_stay(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.headers = SL_STR("{\"ce_id\":\"1\",\"ce_subject\":\"s\",\"CE_Type\":\"t\",\"a\":null}");
    expect_encoded("cloudevents", &m, "{\"paid\":true}",
                   "ce_subject=s\na\n" HEAD TIME KEY SEQUENCE TAIL);
}

static void the_prefix_is_that_of_the_protocol(void **state)
{
    (void)state;
    sl_encoder *e = NULL;
    sl_encode_conf conf = { .format = "cloudevents", .ce_prefix = "ce-" };
    assert_int_equal(sl_encoder_new(&e, &conf, NULL), SL_OK);
    sl_msg m = a_message();
    sl_encoded got;
    char why[160];
    assert_true(sl_encode(e, &m, &got, why));
    char *text = headers_text(&got);
    assert_string_equal(text, "ce-specversion=1.0\nce-id=42\nce-source=sluice\nce-type=paid\n"
                              "ce-time=2023-11-14T22:13:20.123456Z\n"
                              "ce-partitionkey=order:9182\nce-sequence=0000000000000000042\n"
                              "content-type=application/json\nsluice-epoch=7\n");
    free(text);
    sl_encoder_free(e);
}

/* The column counts, unless it says no more than its default. */
static void the_content_type_is_that_of_the_data(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.payload = SL_STR("a,b");
    m.headers = SL_STR("{\"Content-Type\":\"text/csv\"}");
    expect_encoded("cloudevents", &m, "a,b",
                   HEAD TIME KEY SEQUENCE "content-type=text/csv\nsluice-epoch=7\n");
    m.content_type = SL_STR("text/plain");
    expect_encoded("cloudevents", &m, "a,b",
                   HEAD TIME KEY SEQUENCE "content-type=text/plain\nsluice-epoch=7\n");
    expect_encoded("cloudevents-json", &m,
                   J_HEAD J_TIME J_KEY J_SEQUENCE J_TYPE("text/plain") ",\"data\":\"a,b\"}",
                   J_TAIL);
}

static const struct {
    const char *type;
    sl_str payload;
    const char *data;
} kinds[] = {
    { "application/json", { "[1.0e2,\n\"\\u0041\"]", 17 }, "\"data\":[1.0e2, \"\\u0041\"]" },
    { "application/x+json; a=b", { "1", 1 }, "\"data\":1" },
    { "application/json", { "{oops", 5 }, "\"data_base64\":\"e29vcHM=\"" },
    { "application/json", { "", 0 }, "\"data_base64\":\"\"" },
    { "text/json", { "{oops", 5 }, "\"data_base64\":\"e29vcHM=\"" },
    { "text/plain", { "a\"b", 3 }, "\"data\":\"a\\\"b\"" },
    { "Text/Plain ; charset=utf-8", { "", 0 }, "\"data\":\"\"" },
    { "text/plain", { "\xff", 1 }, "\"data_base64\":\"/w==\"" },
    { "application/xml", { "<a/>", 4 }, "\"data\":\"<a/>\"" },
    { "image/svg+xml", { "<a/>", 4 }, "\"data\":\"<a/>\"" },
    { "application/avro", { "abc", 3 }, "\"data_base64\":\"YWJj\"" },
    { "application/octet-stream", { "\x00\xff", 2 }, "\"data_base64\":\"AP8=\"" },
};

static void data_has_the_member_of_its_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        sl_msg m = a_message();
        m.content_type = sl_str_of(kinds[i].type);
        m.payload = kinds[i].payload;
        char want[600];
        snprintf(want, sizeof want,
                 J_HEAD J_TIME J_KEY J_SEQUENCE "\"datacontenttype\":\"%s\",%s}", kinds[i].type,
                 kinds[i].data);
        assert_true(sl_is_json(sl_str_of(want)));
        expect_encoded("cloudevents-json", &m, want, J_TAIL);
    }
}

static void expect_time(int64_t created_us, const char *time)
{
    sl_msg m = a_message();
    m.created_us = created_us;
    sl_buf want = { 0 };
    sl_buf_printf(&want, "%s%s%s%s", HEAD, time, KEY SEQUENCE, TAIL);
    expect_encoded("cloudevents", &m, "{\"paid\":true}", sl_buf_text(&want));
    sl_buf_fini(&want);
}

static void the_time_is_rfc_3339(void **state)
{
    (void)state;
    expect_time(1, "ce_time=1970-01-01T00:00:00.000001Z\n");
    expect_time(-1, "ce_time=1969-12-31T23:59:59.999999Z\n");
    expect_time(INT64_C(951827696000000), "ce_time=2000-02-29T12:34:56.000000Z\n");
    expect_time(INT64_C(253402300799999999), "ce_time=9999-12-31T23:59:59.999999Z\n");
    expect_time(INT64_C(253402300800000000), "");
    expect_time(INT64_MIN, "");
    expect_time(INT64_MAX, "");
}

/* The order of the texts is that of the ids. */
static void a_sequence_sorts_as_text(void **state)
{
    (void)state;
    const int64_t ids[] = { 0, 1, 9, 10, 99, 100, INT64_C(999999999999999999), INT64_MAX };
    char last[32] = "";
    sl_encoder *e = encoder_of("cloudevents");
    for (size_t i = 0; i < COUNT(ids); i++) {
        sl_msg m = a_message();
        m.id = ids[i];
        sl_encoded got;
        char why[160];
        assert_true(sl_encode(e, &m, &got, why));
        for (size_t h = 0; h < got.header_count; h++)
            if (sl_str_eq(got.headers[h].name, SL_STR("ce_sequence"))) {
                assert_int_equal(got.headers[h].value.n, 19);
                assert_true(memcmp(last, got.headers[h].value.p, 19) < 0);
                memcpy(last, got.headers[h].value.p, 19);
            }
        assert_int_equal(strtoll(last, NULL, 10), ids[i]);
    }
    sl_encoder_free(e);
}

/* Section 3.1 of the specification: lower case letters and digits; no name of ours is longer than
 * the 20 characters that it recommends. */
static void names_of_attributes_are_allowed(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.headers = SL_STR("{\"traceparent\":\"" TRACEPARENT "\",\"tracestate\":\"a=b\"}");
    sl_encoder *e = encoder_of("cloudevents");
    sl_encoded got;
    char why[160];
    assert_true(sl_encode(e, &m, &got, why));
    size_t attributes = 0;
    for (size_t h = 0; h < got.header_count; h++) {
        sl_str name = got.headers[h].name;
        if (name.n < 3 || memcmp(name.p, "ce_", 3) != 0)
            continue;
        attributes++;
        assert_in_range(name.n, 4, 23);
        for (size_t i = 3; i < name.n; i++)
            assert_true((name.p[i] >= 'a' && name.p[i] <= 'z') ||
                        (name.p[i] >= '0' && name.p[i] <= '9'));
    }
    assert_int_equal(attributes, 9);
    sl_encoder_free(e);
}

static const struct {
    const char *text;
    bool allowed;
} texts[] = {
    { "a\n", false },
    { "\x7f", false },
    { "\xc2\x80", false }, /* U+0080 to U+009F are control characters, too */
    { "\xc2\x9f", false },
    { "\xc2\xa0", true },
    { "\xff", false },
    { "\xef\xb7\x8f", true },
    { "\xef\xb7\x90", false }, /* U+FDD0 */
    { "\xef\xb7\xaf", false },
    { "\xef\xb7\xb0", true },
    { "\xef\xbf\xbd", true }, /* U+FFFD */
    { "\xef\xbf\xbe", false },
    { "\xf0\x9f\xbf\xbd", true },
    { "\xf0\x9f\xbf\xbe", false }, /* U+1FFFE */
    { "\xf4\x8f\xbf\xbf", false }, /* U+10FFFF */
    { "\xf0\x9f\x98\x80", true },
};

static void only_text_is_an_attribute(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        sl_msg m = a_message();
        m.key = sl_str_of(texts[i].text);
        sl_buf want = { 0 };
        sl_buf_puts(&want, HEAD TIME);
        if (texts[i].allowed)
            sl_buf_printf(&want, "ce_partitionkey=%s\n", texts[i].text);
        sl_buf_puts(&want, SEQUENCE TAIL);
        expect_encoded("cloudevents", &m, "{\"paid\":true}", sl_buf_text(&want));
        sl_buf_fini(&want);
        if (texts[i].allowed)
            continue;
        m.type = m.key;
        expect_refused("cloudevents", &m,
                       "the type is no text that CloudEvents allow as a type");
        m.type = SL_NONE;
        m.topic = m.key;
        expect_refused("cloudevents-json", &m,
                       "the topic is no text that CloudEvents allow as a type");
        m = a_message();
        m.content_type = sl_str_of(texts[i].text);
        expect_refused("cloudevents", &m, "the content type is no text that CloudEvents allow");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_headers),
        cmocka_unit_test(attributes_are_members),
        cmocka_unit_test(no_data_is_a_tombstone_or_an_event_without),
        cmocka_unit_test(what_is_optional_is_left_out),
        cmocka_unit_test(a_trace_goes_along_if_it_is_valid),
        cmocka_unit_test(the_producers_other_headers_stay),
        cmocka_unit_test(the_prefix_is_that_of_the_protocol),
        cmocka_unit_test(the_content_type_is_that_of_the_data),
        cmocka_unit_test(data_has_the_member_of_its_type),
        cmocka_unit_test(the_time_is_rfc_3339),
        cmocka_unit_test(a_sequence_sorts_as_text),
        cmocka_unit_test(names_of_attributes_are_allowed),
        cmocka_unit_test(only_text_is_an_attribute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
