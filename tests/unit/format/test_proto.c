/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are those that another implementation, Google's for Python, makes of the same envelope:
 *   protoc -I proto --python_out=. sluice/v1/envelope.proto
 *   Envelope(id=42, topic="orders", ...).SerializeToString() */
#include "unit/format/encoded.h"

#define OURS                                                                                   \
    "sluice-id=42\nsluice-type=paid\nsluice-epoch=7\ncontent-type=application/x-protobuf\n"

static void expect_bytes(const sl_msg *m, sl_str bytes, const char *headers)
{
    sl_encoder *e = encoder_of("protobuf");
    sl_encoded got;
    char why[160] = "";
    if (!sl_encode(e, m, &got, why))
        fail_msg("%s", why);
    char *text = headers_text(&got);
    assert_string_equal(text, headers);
    assert_int_equal(got.value.n, bytes.n);
    assert_memory_equal(got.value.p, bytes.p, bytes.n);
    free(text);
    sl_encoder_free(e);
}

static void an_envelope_has_all_of_the_message(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.headers = SL_STR("{\"a\":\"b\",\"n\":null,\"e\":\"\",\"\\u00fc\":1.50}");
    expect_bytes(&m,
                 SL_STR("\x08\x2a"
                        "\x12\x06orders"
                        "\x1a\x0aorder:9182"
                        "\x22\x04paid"
                        "\x2a\x10"
                        "application/json"
                        "\x32\x06\x0a\x01"
                        "a\x12\x01"
                        "b"
                        "\x32\x03\x0a\x01n"
                        "\x32\x05\x0a\x01"
                        "e\x12\x00"
                        "\x32\x0a\x0a\x02\xc3\xbc\x12\x04\x31.50"
                        "\x3a\x0d{\"paid\":true}"
                        "\x40\xc0\xc4\x80\xc1\xc1\xc4\x82\x03"
                        "\x48\x07"),
                 "a=b\nn\ne=\n\xc3\xbc=1.50\n" OURS);
}

static void absent_is_not_empty(void **state)
{
    (void)state;
    sl_msg m = { .id = -1,
                 .topic = SL_STR("t"),
                 .key = SL_STR(""),
                 .type = SL_STR(""),
                 .payload = SL_STR(""),
                 .epoch = INT64_MIN };
    const char *headers = "sluice-id=-1\nsluice-epoch=-9223372036854775808\n"
                          "content-type=application/x-protobuf\n";
    expect_bytes(&m,
                 SL_STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                        "\x12\x01t"
                        "\x1a\x00"
                        "\x22\x00"
                        "\x3a\x00"
                        "\x48\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
                 headers);
    m.key = m.type = m.payload = SL_NONE;
    expect_bytes(&m,
                 SL_STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                        "\x12\x01t"
                        "\x48\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
                 headers);
}

/* The producer's content type is of the payload, and stays in the envelope. */
static void our_headers_are_beside_it_only(void **state)
{
    (void)state;
    sl_msg m = { .id = 42,
                 .epoch = 7,
                 .topic = SL_STR("t"),
                 .type = SL_STR("paid"),
                 .headers = SL_STR("{\"content-type\":\"a/b\"}") };
    expect_bytes(&m,
                 SL_STR("\x08\x2a"
                        "\x12\x01t"
                        "\x22\x04paid"
                        "\x32\x13\x0a\x0c"
                        "content-type\x12\x03"
                        "a/b"
                        "\x48\x07"),
                 OURS);
}

static void bytes_are_bytes(void **state)
{
    (void)state;
    sl_msg m = { .topic = SL_STR("t"), .key = { "\x00\xff", 2 }, .payload = { "\xff\x00", 2 } };
    expect_bytes(&m, SL_STR("\x08\x00\x12\x01t\x1a\x02\x00\xff\x3a\x02\xff\x00\x48\x00"),
                 "sluice-id=0\nsluice-epoch=0\ncontent-type=application/x-protobuf\n");
}

static void text_is_text(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.topic = SL_STR("\xff");
    expect_refused("protobuf", &m, "the topic is not UTF-8, or holds a NUL character");
    m = a_message();
    m.type = SL_STR("a\0b");
    expect_refused("protobuf", &m, "the type is not UTF-8, or holds a NUL character");
    m = a_message();
    m.content_type = SL_STR("\xc3");
    expect_refused("protobuf", &m, "the content type is not UTF-8, or holds a NUL character");
    m = a_message();
    m.headers = SL_STR("{\"a\":\"secret\\u0000\"}");
    expect_refused("protobuf", &m, "headers: \"a\" holds a NUL character");
    m.headers = SL_STR("{\"a\\u0000b\":\"c\"}");
    expect_refused("protobuf", &m, "headers: \"a\" holds a NUL character");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_envelope_has_all_of_the_message),
        cmocka_unit_test(absent_is_not_empty),
        cmocka_unit_test(our_headers_are_beside_it_only),
        cmocka_unit_test(bytes_are_bytes),
        cmocka_unit_test(text_is_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
