/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/format/encoded.h"

static sl_str str(const sl_buf *b)
{
    return (sl_str){ b->p, b->n };
}

static void expect_headers(const char *json, const char *headers)
{
    sl_msg m = a_message();
    m.headers = sl_str_of(json);
    expect_encoded("plain", &m, "{\"paid\":true}", headers);
}

static void refuses(const char *json, const char *reason)
{
    sl_msg m = a_message();
    m.headers = sl_str_of(json);
    expect_refused("plain", &m, reason);
}

static void none_are_none(void **state)
{
    (void)state;
    expect_headers(NULL, "");
    expect_headers("", "");
    expect_headers("{}", "");
    expect_headers(" \n{\t} ", "");
}

static void each_kind_of_value_has_its_text(void **state)
{
    (void)state;
    expect_headers(
        "{\"b\":\"x\", \"a\":\"\",\"n\":null,\"i\":1.50e+3,\"t\":true,\"f\":false,"
        "\"o\":{ \"p\":[1] },\"l\":[1, \"\\u0041\"]}",
        "b=x\na=\nn\ni=1.50e+3\nt=true\nf=false\no={ \"p\":[1] }\nl=[1, \"\\u0041\"]\n");
}

static void an_empty_value_is_not_absent(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.headers = SL_STR("{\"a\":\"\",\"b\":null}");
    sl_encoder *e = encoder_of("plain");
    sl_encoded got;
    char why[160];
    assert_true(sl_encode(e, &m, &got, why));
    assert_int_equal(got.header_count, 2);
    assert_non_null(got.headers[0].value.p);
    assert_int_equal(got.headers[0].value.n, 0);
    assert_null(got.headers[1].value.p);
    sl_encoder_free(e);
}

static void escapes_are_resolved(void **state)
{
    (void)state;
    expect_headers("{\"\\u00fc\\\"\":\"\\ud83d\\ude00 \\/\\t\",\"\xc3\xbc\":\"\xc3\xa4\"}",
                   "\xc3\xbc\"=\xf0\x9f\x98\x80 /\t\n\xc3\xbc=\xc3\xa4\n");
}

static void a_nul_is_a_character(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.headers = SL_STR("{\"a\":\"b\\u0000c\"}");
    sl_encoder *e = encoder_of("plain");
    sl_encoded got;
    char why[160];
    assert_true(sl_encode(e, &m, &got, why));
    assert_true(sl_str_eq(got.headers[0].value, ((sl_str){ "b\0c", 3 })));
    sl_encoder_free(e);
}

static void of_a_name_twice_the_last_counts(void **state)
{
    (void)state;
    expect_headers("{\"a\":\"1\",\"b\":\"2\",\"\\u0061\":\"3\"}", "a=3\nb=2\n");
    expect_headers("{\"a\":\"1\",\"A\":\"2\",\"a\":null}", "a\nA=2\n");
}

/* Beyond the few that are compared one by one: every name twice, and in time. */
static void many_names_are_still_told_apart(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    for (size_t names = 14; names <= MANY; names = names < 20 ? names + 1 : names * 10) {
        sl_buf json = { 0 };
        sl_buf_putc(&json, '{');
        for (size_t i = 0; i < 2 * names; i++)
            sl_buf_printf(&json, "%s\"n%zu\":%zu", i ? "," : "", i % names, i);
        sl_buf_putc(&json, '}');
        sl_msg m = a_message();
        m.headers = str(&json);
        sl_encoder *e = encoder_of("plain");
        sl_encoded got;
        char why[160];
        for (int again = 0; again < 2; again++) {
            assert_true(sl_encode(e, &m, &got, why));
            assert_int_equal(got.header_count, names);
            for (size_t i = 0; i < names; i++) {
                char want[32];
                snprintf(want, sizeof want, "n%zu", i);
                assert_true(sl_str_eq(got.headers[i].name, sl_str_of(want)));
                snprintf(want, sizeof want, "%zu", names + i);
                assert_true(sl_str_eq(got.headers[i].value, sl_str_of(want)));
            }
        }
        sl_encoder_free(e);
        sl_buf_fini(&json);
    }
}

static void what_is_no_object_is_refused(void **state)
{
    (void)state;
    refuses("[]", "headers are no JSON object: expected an object at byte 1");
    refuses("\"secret\"", "headers are no JSON object: expected an object at byte 1");

    refuses(" ", "headers are no JSON object: expected an object at byte 2");
    refuses("{\"a\":1", "headers are no JSON object: expected ',' or '}' at byte 7");
    refuses("{\"a\":1}x", "headers are no JSON object: something follows the object at byte 8");
    refuses("{\"a\":\"\xff\"}", "headers are no JSON object: not UTF-8 at byte 7");
    refuses("{a:1}", "headers are no JSON object: expected a member name in quotes at byte 2");
    refuses("{\"a\":1,}",
            "headers are no JSON object: expected a member name in quotes at byte 8");
}

static void odd_names_are_refused(void **state)
{
    (void)state;
    refuses("{\"a\":1,\"\":\"secret\"}", "headers: a name is empty");
    refuses("{\"\\ud83d\":1}", "headers: a name holds half a surrogate pair");
    refuses("{\"a\":\"secret\\ude00\"}",
            "headers: the value of \"a\" holds half a surrogate pair");
}

static void a_name_has_at_most_32767_bytes(void **state)
{
    (void)state;
    for (size_t n = 32766; n <= 32768; n++) {
        sl_buf json = { 0 };
        sl_buf_puts(&json, "{\"");
        for (size_t i = 0; i < n; i++)
            sl_buf_putc(&json, 'x');
        sl_buf_puts(&json, "\":\"v\"}");
        sl_msg m = a_message();
        m.headers = str(&json);
        sl_encoder *e = encoder_of("plain");
        sl_encoded got;
        char why[160] = "";
        assert_int_equal(sl_encode(e, &m, &got, why), n <= 32767);
        if (n > 32767)
            assert_string_equal(why,
                                "headers: the name "
                                "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                                "...\" has 32768 bytes, more than 32767");
        else
            assert_int_equal(got.headers[0].name.n, n);
        sl_encoder_free(e);
        sl_buf_fini(&json);
    }
}

/* Objects with a byte or a few changed: whatever it is, it is encoded or refused with a reason, and
 * what is encoded is a JSON object. Each text has its own memory, so that a sanitizer sees a step
 * beyond its end. */
static void any_bytes_are_encoded_or_refused(void **state)
{
    (void)state;
    static const char model[] =
        "{\"a\":\"x\\n\",\"\\ud83d\\ude00\":null,\"b\":[1,{\"c\":-0.5e1}],"
        "\"d\":true,\"a\":\"\\u00e4\xc3\xa4\",\"traceparent\":\"00-0\"}";
    static const char odd[] = "{}[]\":,\\u0dn-1 \n\0\xff\xed\xc3";
    sl_encoder *encoders[] = { encoder_of("raw"), encoder_of("cloudevents"),
                               encoder_of("cloudevents-json"), encoder_of("json") };
    unsigned seed = 1;
    size_t good = 0;
    for (int round = 0; round < 20000; round++) {
        size_t n = sizeof model - 1;
        char *text = malloc(n);
        memcpy(text, model, n);
        for (unsigned edits = 1 + (unsigned)rand_r(&seed) % 3; edits > 0; edits--)
            text[(size_t)rand_r(&seed) % n] = odd[(size_t)rand_r(&seed) % (sizeof odd - 1)];
        if (rand_r(&seed) % 4 == 0)
            text = realloc(text, n = 1 + (size_t)rand_r(&seed) % n);
        sl_msg m = a_message();
        m.headers = (sl_str){ text, n };
        for (size_t i = 0; i < COUNT(encoders); i++) {
            sl_encoded got;
            char why[160] = "";
            bool done = sl_encode(encoders[i], &m, &got, why);
            assert_int_equal(done, why[0] == '\0');
            if (!done)
                continue;
            good++;
            assert_true(sl_is_json(m.headers));
            for (size_t h = 0; h < got.header_count; h++)
                assert_true(got.headers[h].name.n > 0 && sl_is_utf8(got.headers[h].name) &&
                            sl_is_utf8(got.headers[h].value));
        }
        free(text);
    }
    assert_true(good > 1000);
    for (size_t i = 0; i < COUNT(encoders); i++)
        sl_encoder_free(encoders[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_are_none),
        cmocka_unit_test(each_kind_of_value_has_its_text),
        cmocka_unit_test(an_empty_value_is_not_absent),
        cmocka_unit_test(escapes_are_resolved),
        cmocka_unit_test(a_nul_is_a_character),
        cmocka_unit_test(of_a_name_twice_the_last_counts),
        cmocka_unit_test(many_names_are_still_told_apart),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(odd_names_are_refused),
        cmocka_unit_test(a_name_has_at_most_32767_bytes),
        cmocka_unit_test(any_bytes_are_encoded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
