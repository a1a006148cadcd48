/* SPDX-License-Identifier: Apache-2.0 */
#include "format/json.h"

#include "core/err.h"
#include "format/format.h"

#include "unit/unit.h"

static void valid_json_is_json(void **state)
{
    (void)state;
    const sl_str good[] = {
        SL_STR("null"),
        SL_STR("true"),
        SL_STR("false"),
        SL_STR("0"),
        SL_STR("-0"),
        SL_STR("-1"),
        SL_STR("12"),
        SL_STR("1.5"),
        SL_STR("1e5"),
        SL_STR("1E+5"),
        SL_STR("1.25e-3"),
        SL_STR("0e0"),
        /* beyond what any number type holds */
        SL_STR("123456789012345678901234567890"),
        SL_STR("1e999"),
        SL_STR("-1e-999"),
        SL_STR("0.1234567890123456789012345678901234567890"),
        SL_STR("\"\""),
        SL_STR("\"a\""),
        SL_STR("\"longer than a word, with \\\" and \\\\ inside\""),
        SL_STR("\"\\b\\f\\n\\r\\t\\/\""),
        SL_STR("\"\\u0000\""),
        SL_STR("\"\\u00fC\""),
        SL_STR("\"\\ud83d\\ude00\""),
        SL_STR("\"\\ud800\""),
        SL_STR("\"\\udc00x\""),
        SL_STR("\"gr\xc3\xbc\xc3\x9f\""),
        SL_STR("\"\x7f\""),
        SL_STR("\"\xe2\x80\xa8\""),
        SL_STR("[]"),
        SL_STR("{}"),
        SL_STR("[ ]"),
        SL_STR("{ }"),
        SL_STR("[[],{}]"),
        SL_STR("[1,2,3]"),
        SL_STR("{\"a\":1}"),
        SL_STR("{\"a\":1,\"a\":2}"),
        SL_STR("{\"\":0}"),
        SL_STR(" \t\r\n{ \"a\" : [ 1 , { \"b\" : null } ] , \"c\" : \"d\" } \r\n"),
        SL_STR("[{\"a\":[{\"b\":[{}]}]},[],[[]]]"),
    };
    for (size_t i = 0; i < COUNT(good); i++)
        if (!sl_is_json(good[i]))
            fail_msg("refused: %s", good[i].p);
}

static void none_is_json(const sl_str *bad, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sl_is_json(bad[i]))
            fail_msg("accepted: %s", bad[i].p);
}

static void broken_scalars_are_not(void **state)
{
    (void)state;
    const sl_str bad[] = {
        SL_NONE,
        SL_STR(""),
        SL_STR(" "),
        SL_STR("\n"),
        SL_STR("nul"),
        SL_STR("nulll"),
        SL_STR("True"),
        SL_STR("NaN"),
        SL_STR("Infinity"),
        SL_STR("-Infinity"),
        SL_STR("undefined"),
        SL_STR("01"),
        SL_STR("-01"),
        SL_STR("-"),
        SL_STR("+1"),
        SL_STR("1."),
        SL_STR(".5"),
        SL_STR("1e"),
        SL_STR("1e+"),
        SL_STR("1.e5"),
        SL_STR("0x1"),
        SL_STR("1_000"),
        SL_STR("1 2"),
        SL_STR("--1"),
        SL_STR("1,"),
        SL_STR("1a"),
        SL_STR("\""),
        SL_STR("\"abc"),
        SL_STR("\"\\\""),
        SL_STR("\"\\x\""),
        SL_STR("\"\\u12\""),
        SL_STR("\"\\u12g4\""),
        SL_STR("\"\\U0041\""),
        SL_STR("\"\\"),
        SL_STR("\"\\u"),
        SL_STR("\"tab\there\""),
        SL_STR("\"line\nbreak\""),
        SL_STR("\"nul\0\""),
        SL_STR("'a'"),
        SL_STR("\"\\\0\""),
        SL_STR("\"a\"\"b\""),
        SL_STR("\"12345678\x1f\""),
    };
    none_is_json(bad, COUNT(bad));
}

static void broken_structures_are_not(void **state)
{
    (void)state;
    const sl_str bad[] = {
        SL_STR("["),
        SL_STR("]"),
        SL_STR("[1"),
        SL_STR("[1,"),
        SL_STR("[1,]"),
        SL_STR("[,1]"),
        SL_STR("[1 2]"),
        SL_STR("[1}"),
        SL_STR("[1]]"),
        SL_STR("[]["),
        SL_STR("[\"a\":1]"),
        SL_STR("{"),
        SL_STR("}"),
        SL_STR("{a:1}"),
        SL_STR("{\"a\"}"),
        SL_STR("{\"a\":}"),
        SL_STR("{\"a\":1,}"),
        SL_STR("{,}"),
        SL_STR("{\"a\" 1}"),
        SL_STR("{\"a\":1 \"b\":2}"),
        SL_STR("{\"a\":1]"),
        SL_STR("{\"a\":1}}"),
        SL_STR("{1:2}"),
        SL_STR("{\"a\":1}{\"b\":2}"),
        SL_STR("{\"a\",\"b\"}"),
        SL_STR("[1]x"),
        SL_STR("[1]\0"),
        SL_STR("\0"),
        SL_STR("1\0"),
        SL_STR("\xef\xbb\xbf{}"),
        SL_STR("/* c */1"),
        SL_STR("1//c"),
        SL_STR("\f1"),
        SL_STR("\"\xff\""),
        SL_STR("\"\xc3\""),
        SL_STR("\"\xed\xa0\x80\""),
        SL_STR("\xc2\xa0"
               "1"),
    };
    none_is_json(bad, COUNT(bad));
}

static const char document[] =
    "{\"id\":12,\"ok\":true,\"no\":null,\"price\":-1.50e+3,\"list\":[1,\"two\",{\"three\":[]}],"
    "\"text\":\"a \\\"quoted\\\" \\u00e9 word\"}";

static void no_beginning_of_a_document_is_one(void **state)
{
    (void)state;
    size_t n = sizeof document - 1;
    assert_true(sl_is_json((sl_str){ document, n }));
    for (size_t i = 0; i < n; i++) {
        /* A copy of its own, so that reading on is seen by the sanitizer. */
        char *cut = malloc(i + 1);
        assert_non_null(cut);
        memcpy(cut, document, i);
        char *exact = realloc(cut, i ? i : 1);
        assert_false(sl_is_json((sl_str){ exact, i }));
        free(exact);
    }
}

static sl_str nested(sl_buf *b, size_t depth, bool object)
{
    sl_buf_reset(b);
    for (size_t i = 0; i < depth; i++)
        sl_buf_puts(b, object ? "{\"a\":" : "[");
    sl_buf_puts(b, object ? "1" : "");
    for (size_t i = 0; i < depth; i++)
        sl_buf_putc(b, object ? '}' : ']');
    return (sl_str){ b->p, b->n };
}

static void nesting_has_a_limit_and_no_stack(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    for (int object = 0; object < 2; object++) {
        assert_true(sl_is_json(nested(&b, 63, object)));
        assert_true(sl_is_json(nested(&b, 64, object)));
        assert_true(sl_is_json(nested(&b, 65, object)));
        assert_true(sl_is_json(nested(&b, SL_JSON_DEPTH, object)));
        assert_false(sl_is_json(nested(&b, SL_JSON_DEPTH + 1, object)));
        assert_false(sl_is_json(nested(&b, 1000000, object)));
    }
    /* Brackets of the wrong kind, at every depth. */
    for (size_t depth = 1; depth <= 200; depth++) {
        nested(&b, depth, false);
        b.p[b.n - depth / 2 - 1] = '}';
        assert_false(sl_is_json((sl_str){ b.p, b.n }));
    }
    sl_buf_fini(&b);
}

static void a_value_is_cut_out_without_the_space_around_it(void **state)
{
    (void)state;
    const char text[] = "  [1, 2 ]  , 7";
    sl_json j = { .p = text, .end = text + sizeof text - 1 };
    sl_str value;
    assert_true(sl_json_value(&j, &value));
    assert_true(sl_str_eq(value, SL_STR("[1, 2 ]")));
    assert_string_equal(j.p, "  , 7");
}

static void members_are_walked_through_in_order(void **state)
{
    (void)state;
    const char text[] = " { \"a\" : 1.0 , \"b\":{\"c\":[]} ,\"a\\\"\\u003a\": \"x\"} rest";
    const char *expected[][2] = { { "\"a\"", "1.0" },
                                  { "\"b\"", "{\"c\":[]}" },
                                  { "\"a\\\"\\u003a\"", "\"x\"" } };
    sl_json j = { .p = text, .end = text + sizeof text - 1 };
    sl_str name, value;
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_true(sl_json_member(&j, &name, &value));
        assert_true(sl_str_eq(name, sl_str_of(expected[i][0])));
        assert_true(sl_str_eq(value, sl_str_of(expected[i][1])));
    }
    assert_false(sl_json_member(&j, &name, &value));
    assert_null(j.why);
    assert_string_equal(j.p, " rest");
}

static void a_walk_says_what_is_wrong_and_where(void **state)
{
    (void)state;
    const struct {
        const char *text;
        size_t at;
        const char *why;
    } cases[] = {
        { "", 0, "object" },
        { "[]", 0, "object" },
        { "{", 1, "member name" },
        { "{1:2}", 1, "member name" },
        { "{\"a\"", 4, "':'" },
        { "{\"a\":", 5, "found the end" },
        { "{\"a\":x", 5, "value" },
        { "{\"a\":1", 6, "'}'" },
        { "{\"a\":1{\"b\":2}", 6, "'}'" },
        { "{\"a\":1,}", 7, "member name" },
        { "{\"a\":01}", 6, "leading zero" },
        { "{\"a\":-}", 6, "digit" },
        { "{\"a\":\"\\q\"}", 6, "escape" },
        { "{\"a\":\"x", 7, "without an end" },
        { "{\"a\":\"\t\"}", 6, "control character" },
        { "{\"a\":[1}", 7, "']'" },
        { "{\"a\":{\"b\":1]}", 11, "'}'" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_json j = { .p = cases[i].text, .end = cases[i].text + strlen(cases[i].text) };
        sl_str name, value;
        while (sl_json_member(&j, &name, &value))
            ;
        assert_non_null(j.why);
        if (!strstr(j.why, cases[i].why))
            fail_msg("%s: %s", cases[i].text, j.why);
        assert_int_equal(j.p - cases[i].text, cases[i].at);
    }
}

static void text_is_what_a_string_stands_for(void **state)
{
    (void)state;
    const struct {
        const char *quoted;
        sl_str text;
    } cases[] = {
        { "\"\"", SL_STR("") },
        { "\"plain\"", SL_STR("plain") },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", SL_STR("\"\\/\b\f\n\r\t") },
        { "\"a\\u0000b\"", SL_STR("a\0b") },
        { "\"\\u0041\\u00e9\\u20AC\"", SL_STR("A\xc3\xa9\xe2\x82\xac") },
        { "\"\\ud83d\\ude00!\"", SL_STR("\xf0\x9f\x98\x80!") },
        { "\"\\udbff\\udfff\\ud800\\udc00\"", SL_STR("\xf4\x8f\xbf\xbf\xf0\x90\x80\x80") },
        { "\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
          SL_STR("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf") },
        { "\"\\\\u0041\"", SL_STR("\\u0041") },
    };
    sl_arena a = { 0 };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_str text;
        assert_true(sl_json_text(&a, sl_str_of(cases[i].quoted), &text));
        assert_true(sl_str_eq(text, cases[i].text));
        assert_int_equal(text.p[text.n], '\0');
    }
    sl_arena_fini(&a);
}

static void half_a_pair_stands_for_nothing(void **state)
{
    (void)state;
    const char *const cases[] = {
        "\"\\ud800\"",        "\"\\ud800x\"",       "\"\\ud800\\n\"",     "\"\\udc00\"",
        "\"\\ud800\\u0041\"", "\"\\ud800\\ud800\"", "\"\\udc00\\ud800\"",
    };
    sl_arena a = { 0 };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_str text;
        assert_true(sl_is_json(sl_str_of(cases[i])));
        assert_false(sl_json_text(&a, sl_str_of(cases[i]), &text));
    }
    sl_arena_fini(&a);
}

static void strings_are_escaped(void **state)
{
    (void)state;
    const struct {
        sl_str s;
        const char *quoted;
    } cases[] = {
        { SL_STR(""), "\"\"" },
        { SL_NONE, "\"\"" },
        { SL_STR("plain and long enough for a word or two"),
          "\"plain and long enough for a word or two\"" },
        { SL_STR("\"\\/\b\f\n\r\t"), "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
        { SL_STR("\0\x01\x1f\x7f"), "\"\\u0000\\u0001\\u001f\x7f\"" },
        { SL_STR("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"),
          "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"" },
        { SL_STR("bad \xff\xfe end"), "\"bad \xef\xbf\xbd\xef\xbf\xbd end\"" },
        { SL_STR("\xc3"), "\"\xef\xbf\xbd\"" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        sl_buf b = { 0 };
        sl_json_string(&b, cases[i].s);
        assert_string_equal(sl_buf_text(&b), cases[i].quoted);
        assert_true(sl_is_json((sl_str){ b.p, b.n }));
        sl_buf_fini(&b);
    }
}

static void every_byte_at_every_offset_survives_quoting(void **state)
{
    (void)state;
    sl_arena a = { 0 };
    sl_buf b = { 0 };
    char s[24];
    for (int c = 0; c < 0x80; c++)
        for (size_t at = 0; at < sizeof s; at++) {
            memset(s, 'x', sizeof s);
            s[at] = (char)c;
            sl_buf_reset(&b);
            sl_json_string(&b, (sl_str){ s, sizeof s });
            sl_str quoted = { b.p, b.n }, text;
            assert_true(sl_is_json(quoted));
            assert_true(sl_json_text(&a, quoted, &text));
            assert_true(sl_str_eq(text, (sl_str){ s, sizeof s }));
        }
    sl_buf_fini(&b);
    sl_arena_fini(&a);
}

static void json_types_are_known(void **state)
{
    (void)state;
    const char *const yes[] = { "application/json",
                                "Application/JSON",
                                "text/json",
                                "application/json; charset=utf-8",
                                " application/json ;x=y",
                                "application/cloudevents+json",
                                "application/x+JSON;a=b" };
    const char *const no[] = { "",
                               "text/plain",
                               "json",
                               "application/jsonl",
                               "+json",
                               "application/json5",
                               "x/yjson",
                               ";application/json",
                               "application/octet-stream" };
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(sl_is_json_type(sl_str_of(yes[i])));
    for (size_t i = 0; i < COUNT(no); i++)
        assert_false(sl_is_json_type(sl_str_of(no[i])));
    assert_false(sl_is_json_type(SL_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_json_is_json),
        cmocka_unit_test(broken_scalars_are_not),
        cmocka_unit_test(broken_structures_are_not),
        cmocka_unit_test(no_beginning_of_a_document_is_one),
        cmocka_unit_test(nesting_has_a_limit_and_no_stack),
        cmocka_unit_test(a_value_is_cut_out_without_the_space_around_it),
        cmocka_unit_test(members_are_walked_through_in_order),
        cmocka_unit_test(a_walk_says_what_is_wrong_and_where),
        cmocka_unit_test(text_is_what_a_string_stands_for),
        cmocka_unit_test(half_a_pair_stands_for_nothing),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(every_byte_at_every_offset_survives_quoting),
        cmocka_unit_test(json_types_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
