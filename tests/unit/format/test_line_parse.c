/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/format/lines.h"

static void expect_payload(sl_draft d, sl_str payload)
{
    assert_true(sl_str_eq((sl_str){ d.payload, d.payload_bytes }, payload));
}

static void the_shortest_line_has_a_topic_and_a_payload(void **state)
{
    (void)state;
    sl_draft d = PARSED("{\"topic\":\"orders\",\"payload\":{\"paid\":true}}");
    assert_string_equal(d.topic, "orders");
    expect_payload(d, SL_STR("{\"paid\":true}"));
    assert_null(d.key);
    assert_null(d.type);
    assert_null(d.content_type);
    assert_null(d.headers);
    assert_null(d.idempotency_key);
    assert_int_equal(d.available_at_us, 0);
}

static void every_member_is_taken_in_any_order(void **state)
{
    (void)state;
    sl_draft d =
        PARSED(" { \"headers\" : { \"a\" : \"b\" } , \"payload\" : \"x\\n\" ,"
               "\"available_at\":1700000000,\"idempotency_key\":\"i-1\","
               "\"content_type\":\"text/plain\",\"type\":\"Paid\",\"key\":\"order:\\u00e9\","
               "\"\\u0074opic\":\"orders\"}\r\n");
    assert_string_equal(d.topic, "orders");
    assert_int_equal(d.key_bytes, 8);
    assert_memory_equal(d.key, "order:\xc3\xa9", 8);
    assert_string_equal(d.type, "Paid");
    assert_string_equal(d.content_type, "text/plain");
    assert_string_equal(d.headers, "{ \"a\" : \"b\" }");
    assert_string_equal(d.idempotency_key, "i-1");
    assert_int_equal(d.available_at_us, INT64_C(1700000000000000));
    expect_payload(d, SL_STR("x\n"));
}

static void optional_members_may_be_null(void **state)
{
    (void)state;
    sl_draft d = PARSED("{\"topic\":\"t\",\"payload\":1,\"key\":null,\"type\":null,"
                        "\"headers\":null,\"content_type\":null,\"idempotency_key\":null,"
                        "\"available_at\":null}");
    assert_null(d.key);
    assert_null(d.type);
    assert_null(d.headers);
    assert_null(d.content_type);
    assert_null(d.idempotency_key);
    assert_int_equal(d.available_at_us, 0);
}

static void an_empty_key_is_a_key(void **state)
{
    (void)state;
    sl_draft d = PARSED("{\"topic\":\"t\",\"payload\":1,\"key\":\"\"}");
    assert_non_null(d.key);
    assert_int_equal(d.key_bytes, 0);
}

static void empty_headers_are_none(void **state)
{
    (void)state;
    assert_null(PARSED("{\"topic\":\"t\",\"payload\":1,\"headers\":{ }}").headers);
}

static void the_payload_is_the_very_bytes_of_the_line(void **state)
{
    (void)state;
    const char *const payloads[] = {
        "null",
        "true",
        "0",
        "-0.0",
        "1.50",
        "1E+2",
        "1e999",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\\u0041\"",
        "\"\\/\"",
        "[]",
        "[ 1 ,2 ]",
        "{ \"b\":1, \"a\":2, \"b\":3 }",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\xf0\x9f\x98\x80\"",
    };
    for (size_t i = 0; i < COUNT(payloads); i++) {
        sl_buf line = { 0 };
        sl_buf_printf(&line, "{\"payload\": %s ,\"topic\":\"t\"}", payloads[i]);
        expect_payload(parsed((sl_str){ line.p, line.n }), sl_str_of(payloads[i]));
        sl_buf_fini(&line);
    }
}

static void a_string_of_another_type_stands_for_its_text(void **state)
{
    (void)state;
    expect_payload(
        PARSED("{\"topic\":\"t\",\"payload\":\"a\\u0000b\",\"content_type\":\"text/csv\"}"),
        SL_STR("a\0b"));
    expect_payload(PARSED("{\"topic\":\"t\",\"payload\":\"\",\"content_type\":\"text/csv\"}"),
                   SL_STR(""));
    expect_payload(PARSED("{\"topic\":\"t\",\"payload\":\"a\",\"content_type\":\"x/y+json\"}"),
                   SL_STR("\"a\""));
    expect_payload(PARSED("{\"topic\":\"t\",\"payload\":\"a\",\"content_type\":\"\"}"),
                   SL_STR("\"a\""));
    expect_payload(
        PARSED("{\"topic\":\"t\",\"payload\":[\"a\"],\"content_type\":\"text/csv\"}"),
        SL_STR("[\"a\"]"));
    REFUSED("{\"topic\":\"t\",\"payload\":\"\\ud800\",\"content_type\":\"text/csv\"}",
            "member \"payload\" holds half a surrogate pair");
}

static void base64_is_decoded(void **state)
{
    (void)state;
    expect_payload(PARSED("{\"topic\":\"t\",\"payload_base64\":\"/wD+\"}"),
                   SL_STR("\xff\0\xfe"));
    expect_payload(PARSED("{\"topic\":\"t\",\"payload_base64\":\"\\/wD+\"}"),
                   SL_STR("\xff\0\xfe"));
    sl_draft d = PARSED("{\"topic\":\"t\",\"payload_base64\":\"\"}");
    assert_non_null(d.payload);
    assert_int_equal(d.payload_bytes, 0);
    REFUSED("{\"topic\":\"t\",\"payload_base64\":\"/wD\"}", "is not base64\nhint: ");
    REFUSED("{\"topic\":\"t\",\"payload_base64\":null}",
            "\"payload_base64\" is null, not a string");
    REFUSED("{\"topic\":\"t\",\"payload_base64\":\"AAAA\",\"payload\":1}",
            "exclude each other");
    REFUSED("{\"topic\":\"t\",\"payload\":null,\"payload_base64\":\"AAAA\"}",
            "exclude each other");
}

/* ---- Bad lines ---- */

static void what_is_no_object_is_refused(void **state)
{
    (void)state;
    REFUSED("", "the line is empty");
    REFUSED(" \t\r\n", "the line is empty");
    REFUSED("[]", "the line is an array, not an object");
    REFUSED("\"x\"", "the line is a string, not an object");
    REFUSED("12", "the line is a number, not an object");
    REFUSED("null", "the line is null, not an object");
    REFUSED("hello", "not a line of JSON at byte 1: expected an object");
    REFUSED("topic=x", "not a line of JSON at byte 1");
    REFUSED("\xef\xbb\xbf{}", "byte order mark\nhint: ");
    REFUSED("{\"topic\":\"t\",\"payload\":1", "at byte 25: expected ',' or '}'");
    REFUSED("{\"topic\":\"t\",\"payload\":1,}", "at byte 26: expected a member name");
    REFUSED("{\"topic\":\"t\",\"payload\":1}x", "at byte 26: something follows the object");
    REFUSED("{\"topic\":\"t\",\"payload\":1} {}", "at byte 27: something follows the object");
    REFUSED("{\"topic\":\"t\",\"payload\":1}\0", "at byte 26: something follows the object");
    REFUSED("{\"topic\":\"t\",\"payload\":01}", "at byte 25: number with a leading zero");
    REFUSED("{\"topic\":\"t\",\"payload\":}", "at byte 24: expected a value");
    REFUSED("{'topic':'t'}", "at byte 2: expected a member name in quotes");
    REFUSED("{\"topic\":\"a\nb\"}", "at byte 12: control character");
}

static void bytes_that_are_not_utf_8_are_placed(void **state)
{
    (void)state;
    REFUSED("\xff", "not UTF-8 at byte 1 (0xff)");
    REFUSED("{\"topic\":\"\xc3(\"}", "not UTF-8 at byte 11 (0xc3)");
    REFUSED("{\"topic\":\"t\",\"payload\":\"\xed\xa0\x80\"}", "not UTF-8 at byte 25 (0xed)");
}

static void unknown_members_are_refused_with_the_nearest_name(void **state)
{
    (void)state;
    const struct {
        const char *name;
        const char *hint;
    } cases[] = {
        { "tpoic", "hint: did you mean \"topic\"?" },
        { "Topic", "hint: did you mean \"topic\"?" },
        { "paylod", "hint: did you mean \"payload\"?" },
        { "content-type", "hint: did you mean \"content_type\"?" },
        { "idempotencykey", "hint: did you mean \"idempotency_key\"?" },
        { "entity_key", "hint: did you mean \"key\"?" },
        { "event_type", "hint: did you mean \"type\"?" },
        { "zzzzzz", "hint: there are topic, key, payload, " },
        { "", "hint: there are topic, key, payload, " },
        { "\\u0000", "hint: there are topic, key, payload, " },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_buf line = { 0 };
        sl_buf_printf(&line, "{\"topic\":\"t\",\"payload\":1,\"%s\":1}", cases[i].name);
        refused((sl_str){ line.p, line.n }, "unknown member \"");
        refused((sl_str){ line.p, line.n }, cases[i].hint);
        sl_buf_fini(&line);
    }
    REFUSED("{\"\\ud800\":1}", "name holds half a surrogate pair");
}

static void a_long_unknown_name_is_cut_between_characters(void **state)
{
    (void)state;
    sl_buf line = { 0 };
    sl_buf_puts(&line, "{\"x");
    for (int i = 0; i < 1000; i++)
        sl_buf_puts(&line, "\xc3\xbc");
    sl_buf_puts(&line, "\":1}");
    sl_draft d;
    sl_err err = { 0 };
    assert_int_equal(sl_line_parse(&d, line.p, line.n, &arena, &err), SL_REFUSED);
    assert_true(sl_is_utf8(sl_str_of(err.text)));
    assert_non_null(strstr(err.text, "\nhint: "));
    sl_buf_fini(&line);
}

static void wrong_types_are_named(void **state)
{
    (void)state;
    REFUSED("{\"topic\":1,\"payload\":1}", "member \"topic\" is a number, not a string");
    REFUSED("{\"topic\":null,\"payload\":1}", "member \"topic\" is null, not a string");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"key\":12}",
            "member \"key\" is a number, not a str");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"key\":[]}",
            "member \"key\" is an array, not a str");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"type\":{}}",
            "member \"type\" is an object, not a");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"content_type\":false}",
            "member \"content_type\" is a boolean, not a string");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"idempotency_key\":7}",
            "member \"idempotency_key\" is a number, not a string");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"headers\":[]}",
            "member \"headers\" is an array, not an object of strings");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"headers\":{\"a\":\"b\",\"n\":1}}",
            "header \"n\" is a number, not a string");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"headers\":{\"a\":null}}",
            "header \"a\" is null, not a string");
}

static void what_is_missing_empty_or_double_is_named(void **state)
{
    (void)state;
    REFUSED("{}", "member \"topic\" is missing");
    REFUSED("{\"payload\":1}", "member \"topic\" is missing");
    REFUSED("{\"topic\":\"t\"}", "member \"payload\" is missing\nhint: ");
    REFUSED("{\"topic\":\"\",\"payload\":1}", "member \"topic\" is empty");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"idempotency_key\":\"\"}",
            "member \"idempotency_key\" is empty");
    REFUSED("{\"topic\":\"t\",\"topic\":\"u\",\"payload\":1}",
            "member \"topic\" is there twice");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"payload\":1}",
            "member \"payload\" is there twice");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"key\":null,\"key\":null}",
            "\"key\" is there twice");
}

static void text_that_no_database_can_hold_is_refused(void **state)
{
    (void)state;
    REFUSED("{\"topic\":\"a\\u0000\",\"payload\":1}", "member \"topic\" holds a NUL character");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"key\":\"\\u0000\"}",
            "member \"key\" holds a NUL");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"type\":\"\\u0000\"}",
            "member \"type\" holds a NUL");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"idempotency_key\":\"\\u0000\"}", "holds a NUL");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"content_type\":\"\\u0000\"}", "holds a NUL");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"headers\":{\"a\":\"\\u0000\"}}", "holds a NUL");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"headers\":{\"\\u0000\":\"\"}}", "holds a NUL");
    REFUSED("{\"topic\":\"\\udc00\",\"payload\":1}", "\"topic\" holds half a surrogate pair");
    REFUSED("{\"topic\":\"t\",\"payload\":1,\"headers\":{\"\\ud800\":\"\"}}", "surrogate");
}

static void a_key_has_at_most_512_bytes(void **state)
{
    (void)state;
    for (size_t n = 511; n <= 514; n++) {
        sl_buf line = { 0 };
        sl_buf_puts(&line, "{\"topic\":\"t\",\"payload\":1,\"key\":\"");
        for (size_t i = 0; i < n; i++)
            sl_buf_putc(&line, 'k');
        sl_buf_puts(&line, "\"}");
        if (n <= 512)
            assert_int_equal(parsed((sl_str){ line.p, line.n }).key_bytes, n);
        else
            refused((sl_str){ line.p, line.n }, "bytes, more than 512");
        sl_buf_fini(&line);
    }
}

static void a_payload_may_be_nested_as_deep_as_one_that_is_printed(void **state)
{
    (void)state;
    for (size_t depth = 511; depth <= 513; depth++) {
        sl_buf line = { 0 };
        sl_buf_puts(&line, "{\"topic\":\"t\",\"payload\":");
        for (size_t i = 0; i < depth; i++)
            sl_buf_putc(&line, '[');
        for (size_t i = 0; i < depth; i++)
            sl_buf_putc(&line, ']');
        sl_buf_puts(&line, "}");
        if (depth <= 512)
            assert_int_equal(parsed((sl_str){ line.p, line.n }).payload_bytes, 2 * depth);
        else
            refused((sl_str){ line.p, line.n }, "nested deeper than 512 levels");
        sl_buf_fini(&line);
    }
}

static void the_error_may_be_left_out(void **state)
{
    (void)state;
    sl_draft d;
    assert_int_equal(sl_line_parse(&d, "x", 1, &arena, NULL), SL_REFUSED);
    assert_int_equal(sl_line_parse(&d, NULL, 0, &arena, NULL), SL_REFUSED);
}

/* ---- There and back ---- */

/* What the line says must be what the message held; `payload` is what is expected of it. */
static void there_and_back(const sl_msg *m, sl_str payload)
{
    sl_buf line = { 0 };
    sl_format_line(&line, m, "n1/2", ",\"receipt\":\"12:7\"");
    sl_draft d = parsed((sl_str){ line.p, line.n });
    sl_buf_fini(&line);
    assert_true(sl_str_eq(sl_str_of(d.topic), m->topic));
    assert_true(sl_str_eq((sl_str){ d.key, d.key_bytes }, m->key));
    assert_true(sl_str_eq(sl_str_of(d.type), m->type));
    assert_true(sl_str_eq(sl_str_of(d.headers), m->headers));
    if (d.content_type)
        assert_true(sl_str_eq(sl_str_of(d.content_type), m->content_type));
    else
        assert_true(sl_str_eq(m->content_type, SL_STR("application/json")));
    expect_payload(d, payload);
    sl_arena_reset(&arena);
}

static void any_bytes_of_any_type_come_back(void **state)
{
    (void)state;
    const sl_str payloads[] = {
        SL_STR(""),
        SL_STR("\0"),
        SL_STR("text"),
        SL_STR("\"quoted\""),
        SL_STR("{\"a\": 1}"),
        SL_STR("\xff\xfe\0\x01"),
        SL_STR("\xc3"),
        SL_STR("line\nbreak\r\n"),
        SL_STR("\xe2\x80\xa8 \\u0041 \x7f \x1b"),
        SL_STR("\xed\xa0\x80"),
        SL_STR("null"),
        SL_STR("\xf0\x9f\x98\x80"),
    };
    for (size_t i = 0; i < COUNT(payloads); i++) {
        sl_msg m = { .topic = SL_STR("t\t\""),
                     .key = SL_STR("k\\"),
                     .type = SL_STR("\xc3\xbc"),
                     .headers = SL_STR("{\"traceparent\":\"00-\\u00e9\"}"),
                     .content_type = SL_STR("application/octet-stream"),
                     .payload = payloads[i] };
        there_and_back(&m, payloads[i]);
    }
}

static void json_comes_back_as_it_was_spelled(void **state)
{
    (void)state;
    const struct {
        sl_str payload;
        sl_str back;
    } cases[] = {
        { SL_STR("null"), SL_STR("null") },
        { SL_STR("1.00"), SL_STR("1.00") },
        { SL_STR("-0"), SL_STR("-0") },
        { SL_STR("123456789012345678901234567890"), SL_STR("123456789012345678901234567890") },
        { SL_STR("1e999"), SL_STR("1e999") },
        { SL_STR("\"\\u0000\\/\\u0041\""), SL_STR("\"\\u0000\\/\\u0041\"") },
        { SL_STR("{\"b\":1,\"a\":2,\"b\":3}"), SL_STR("{\"b\":1,\"a\":2,\"b\":3}") },
        { SL_STR("{\n  \"a\": [\r\n\t1\n  ]\n}\n"), SL_STR("{   \"a\": [  \t1   ] }") },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_msg m = { .topic = SL_STR("t"),
                     .type = SL_STR(""),
                     .content_type = SL_STR("application/json"),
                     .payload = cases[i].payload };
        there_and_back(&m, cases[i].back);
        m.content_type = SL_STR("application/vnd.x+json");
        there_and_back(&m, cases[i].back);
    }
}

static void five_megabytes_come_back(void **state)
{
    (void)state;
    size_t n = 5 * 1024 * 1024;
    char *bytes = malloc(n);
    assert_non_null(bytes);
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(kind == 0 ? i * 131 >> 3 : kind == 1 ? i % 0x80 : '0' + i % 10);
        bytes[0] = (char)(kind == 0 ? 0xff : '1');
        sl_msg m = { .topic = SL_STR("t"),
                     .type = SL_STR(""),
                     .content_type = kind == 2 ? SL_STR("application/json") : SL_STR("x/y"),
                     .payload = { bytes, n } };
        there_and_back(&m, m.payload);
    }
    free(bytes);
}

/* ---- Chance ---- */

static uint64_t seed = 20240229;

static uint64_t chance(uint64_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % limit;
}

static const char *const beginnings[] = {
    "{\"topic\":\"orders\",\"key\":\"order:1\",\"payload\":{\"a\":[1,2.5e3,true,null,\"x\\n\"]}"
    "}",
    "{\"id\":1,\"topic\":\"t\",\"key\":null,\"type\":\"\",\"content_type\":\"text/plain\","
    "\"payload\":\"gr\xc3\xbc\xc3\x9f \\ud83d\\ude00\",\"headers\":{\"a\":\"b\"},\"attempt\":1,"
    "\"worker\":\"n1/2\",\"epoch\":7}",
    "{\"topic\":\"t\",\"payload_base64\":\"AAECAwQ=\",\"idempotency_key\":\"i\","
    "\"available_at\":\"2027-01-31T08:30:00.5+01:00\"}",
    "{\"topic\":\"t\",\"payload\":[[[[]]]],\"available_at\":1.7e9,\"type\":\"Paid\"}",
};

static size_t mutate(char *s, size_t n, size_t cap)
{
    static const char tokens[] = "{}[]\",:\\u0de\n -+.eE1tfn\xc3\xff\x80";
    size_t at = n ? chance(n) : 0;
    switch (chance(5)) {
    case 0:
        s[at] = (char)chance(256);
        return n;
    case 1:
        s[at] = tokens[chance(sizeof tokens)];
        return n;
    case 2: /* a piece is lost */
        if (n > 0) {
            size_t piece = 1 + chance(n - at < 8 ? n - at : 8);
            memmove(s + at, s + at + piece, n - at - piece);
            return n - piece;
        }
        return n;
    case 3: /* a piece is doubled */
        if (n > 0) {
            size_t piece = 1 + chance(n - at);
            if (n + piece <= cap) {
                memmove(s + at + piece, s + at, n - at);
                return n + piece;
            }
        }
        return n;
    default:
        return chance(n + 1);
    }
}

static void mutated_lines_are_taken_or_refused_with_a_reason(void **state)
{
    (void)state;
    size_t taken = 0, turned_down = 0;
    for (int round = 0; round < 60000; round++) {
        const char *from = beginnings[chance(COUNT(beginnings))];
        size_t cap = 4 * strlen(from), n = strlen(from);
        char *s = malloc(cap + 1);
        assert_non_null(s);
        memcpy(s, from, n);
        for (uint64_t i = chance(4) + (round % 8 != 0); i > 0; i--)
            n = mutate(s, n, cap);
        s = realloc(s, n ? n : 1);
        sl_draft d;
        sl_err err = { 0 };
        sl_rc rc = sl_line_parse(&d, s, n, &arena, &err);
        if (rc == SL_OK) {
            assert_true(d.topic && d.topic[0] && d.payload);
            taken++;
        } else {
            assert_int_equal(rc, SL_REFUSED);
            assert_true(err.text[0] != '\0');
            assert_true(sl_is_utf8(sl_str_of(err.text)));
            turned_down++;
        }
        free(s);
        sl_arena_reset(&arena);
    }
    assert_true(taken > 1000);
    assert_true(turned_down > 10000);
}

static void random_messages_come_back(void **state)
{
    (void)state;
    for (int round = 0; round < 5000; round++) {
        char bytes[64];
        size_t n = chance(sizeof bytes);
        uint64_t limit = chance(2) ? 256 : 0x80;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)chance(limit);
        sl_msg m = { .topic = SL_STR("t"),
                     .type = SL_STR(""),
                     .content_type = SL_STR("application/x-any"),
                     .payload = { bytes, n } };
        there_and_back(&m, m.payload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_shortest_line_has_a_topic_and_a_payload, forget),
        cmocka_unit_test_teardown(every_member_is_taken_in_any_order, forget),
        cmocka_unit_test_teardown(optional_members_may_be_null, forget),
        cmocka_unit_test_teardown(an_empty_key_is_a_key, forget),
        cmocka_unit_test_teardown(empty_headers_are_none, forget),
        cmocka_unit_test_teardown(the_payload_is_the_very_bytes_of_the_line, forget),
        cmocka_unit_test_teardown(a_string_of_another_type_stands_for_its_text, forget),
        cmocka_unit_test_teardown(base64_is_decoded, forget),
        cmocka_unit_test_teardown(what_is_no_object_is_refused, forget),
        cmocka_unit_test_teardown(bytes_that_are_not_utf_8_are_placed, forget),
        cmocka_unit_test_teardown(unknown_members_are_refused_with_the_nearest_name, forget),
        cmocka_unit_test_teardown(a_long_unknown_name_is_cut_between_characters, forget),
        cmocka_unit_test_teardown(wrong_types_are_named, forget),
        cmocka_unit_test_teardown(what_is_missing_empty_or_double_is_named, forget),
        cmocka_unit_test_teardown(text_that_no_database_can_hold_is_refused, forget),
        cmocka_unit_test_teardown(a_key_has_at_most_512_bytes, forget),
        cmocka_unit_test_teardown(a_payload_may_be_nested_as_deep_as_one_that_is_printed,
                                  forget),
        cmocka_unit_test_teardown(the_error_may_be_left_out, forget),
        cmocka_unit_test_teardown(any_bytes_of_any_type_come_back, forget),
        cmocka_unit_test_teardown(json_comes_back_as_it_was_spelled, forget),
        cmocka_unit_test_teardown(five_megabytes_come_back, forget),
        cmocka_unit_test_teardown(mutated_lines_are_taken_or_refused_with_a_reason, forget),
        cmocka_unit_test_teardown(random_messages_come_back, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
