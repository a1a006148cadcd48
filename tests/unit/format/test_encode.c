/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/format/encoded.h"

#include "format/encoder.h"

static void an_unknown_format_is_refused_with_the_known_ones(void **state)
{
    (void)state;
    sl_encoder *e = NULL;
    sl_err err = { 0 };
    sl_encode_conf conf = { .format = "avro" };
    assert_int_equal(sl_encoder_new(&e, &conf, &err), SL_REFUSED);
    assert_null(e);
    assert_ptr_equal(strstr(err.text, "unknown format \"avro\"\nhint: there are raw, plain"),
                     err.text);
    conf.format = "plian";
    assert_int_equal(sl_encoder_new(&e, &conf, &err), SL_REFUSED);
    assert_non_null(strstr(err.text, "hint: did you mean plain? there are raw, "));
    conf.format = "";
    assert_int_equal(sl_encoder_new(&e, &conf, &err), SL_REFUSED);
}

/* A build without it says so, and not that there is no such thing. */
static void protobuf_is_there_or_was_left_out(void **state)
{
    (void)state;
    sl_encoder *e = NULL;
    sl_err err = { 0 };
    sl_encode_conf conf = { .format = "protobuf" };
    if (sl_encoder_new(&e, &conf, &err) != SL_OK)
        assert_string_equal(
            err.text, "this build has no format \"protobuf\"\n"
                      "hint: build it with protobuf-c: meson configure -Dprotobuf=enabled");
    else
        assert_non_null(e);
    sl_encoder_free(e);
}

static void a_source_is_a_uri_reference(void **state)
{
    (void)state;
    const char *bad[] = { "", "my shop", "a\nb", "sch\xc3\xb6n", "<a>", "a\"b", "a\x7f" };
    sl_encoder *e = NULL;
    for (size_t i = 0; i < COUNT(bad); i++) {
        sl_err err = { 0 };
        sl_encode_conf conf = { .source = bad[i] };
        assert_int_equal(sl_encoder_new(&e, &conf, &err), SL_REFUSED);
        assert_non_null(strstr(err.text, "is no URI reference"));
    }
    const char *good[] = { NULL, "/shop", "urn:x:1", "https://shop.example/a?b=c%20d#e", "a" };
    for (size_t i = 0; i < COUNT(good); i++) {
        sl_encode_conf conf = { .source = good[i] };
        assert_int_equal(sl_encoder_new(&e, &conf, NULL), SL_OK);
        sl_encoder_free(e);
    }
    sl_encoder_free(NULL);
}

/* Nothing of one message is left in the next, whatever became of the first. */
static void an_encoder_is_used_again(void **state)
{
    (void)state;
    sl_encoder *e = encoder_of("raw");
    sl_msg with = a_message(), bad = a_message(), without = a_message();
    with.headers = SL_STR("{\"a\":\"b\\n\"}");
    bad.headers = SL_STR("{\"a\":\"b\",\"c\"}");
    sl_encoded got;
    char why[160];
    for (int i = 0; i < 3; i++) {
        assert_true(sl_encode(e, &with, &got, why));
        assert_int_equal(got.header_count, 4);
        assert_false(sl_encode(e, &bad, &got, why));
        assert_null(got.value.p);
        assert_int_equal(got.header_count, 0);
        assert_true(sl_encode(e, &without, &got, why));
        assert_int_equal(got.header_count, 3);
    }
    sl_encoder_free(e);
}

/* In every format of this build, and only where it is asked for. */
static void an_empty_payload_may_be_no_value(void **state)
{
    (void)state;
    sl_msg empty = a_message(), full = a_message();
    sl_encoded got;
    char why[160];
    empty.payload = SL_STR("");
    for (const sl_encode_ops *const *ops = sl_encode_all; *ops; ops++) {
        sl_encoder *e = NULL;
        sl_encode_conf conf = { .format = (*ops)->name, .tombstones = true };
        assert_int_equal(sl_encoder_new(&e, &conf, NULL), SL_OK);
        assert_true(sl_encode(e, &empty, &got, why));
        assert_null(got.value.p);
        assert_int_equal(got.value.n, 0);
        assert_true(sl_encode(e, &full, &got, why));
        assert_non_null(got.value.p);
        assert_true(got.value.n > 0);
        sl_encoder_free(e);

        conf.tombstones = false;
        assert_int_equal(sl_encoder_new(&e, &conf, NULL), SL_OK);
        assert_true(sl_encode(e, &empty, &got, why));
        assert_non_null(got.value.p); /* empty, or an envelope */
        sl_encoder_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_format_is_refused_with_the_known_ones),
        cmocka_unit_test(protobuf_is_there_or_was_left_out),
        cmocka_unit_test(a_source_is_a_uri_reference),
        cmocka_unit_test(an_encoder_is_used_again),
        cmocka_unit_test(an_empty_payload_may_be_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
