/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/format/encoded.h"

#define OURS "sluice-id=42\nsluice-type=paid\nsluice-epoch=7\n"

static void the_payload_is_the_value(void **state)
{
    (void)state;
    sl_msg m = a_message();
    expect_encoded("raw", &m, "{\"paid\":true}", OURS);
    expect_encoded(NULL, &m, "{\"paid\":true}", OURS);
    expect_encoded("plain", &m, "{\"paid\":true}", "");
    m.payload = SL_STR("");
    expect_encoded("raw", &m, "", OURS);
    expect_encoded("plain", &m, "", "");
}

static void the_value_is_not_copied(void **state)
{
    (void)state;
    sl_msg m = a_message();
    sl_encoder *e = encoder_of("raw");
    sl_encoded got;
    char why[160];
    assert_true(sl_encode(e, &m, &got, why));
    assert_ptr_equal(got.value.p, m.payload.p);
    sl_encoder_free(e);
}

static void no_payload_is_a_tombstone(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.payload = SL_NONE;
    expect_encoded("raw", &m, NULL, OURS);
    expect_encoded("plain", &m, NULL, "");
}

static void no_type_is_no_header(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.type = SL_NONE;
    expect_encoded("raw", &m, "{\"paid\":true}", "sluice-id=42\nsluice-epoch=7\n");
    m.type = SL_STR("");
    expect_encoded("raw", &m, "{\"paid\":true}", "sluice-id=42\nsluice-epoch=7\n");
}

static void numbers_are_whole(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.id = INT64_MAX;
    m.epoch = INT64_MIN;
    expect_encoded("raw", &m, "{\"paid\":true}",
                   "sluice-id=9223372036854775807\nsluice-type=paid\n"
                   "sluice-epoch=-9223372036854775808\n");
    m.id = m.epoch = 0;
    expect_encoded("raw", &m, "{\"paid\":true}",
                   "sluice-id=0\nsluice-type=paid\nsluice-epoch=0\n");
}

static void another_content_type_is_said_once(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.content_type = SL_STR("text/plain");
    expect_encoded("raw", &m, "{\"paid\":true}", OURS "content-type=text/plain\n");
    expect_encoded("plain", &m, "{\"paid\":true}", "");
    m.headers = SL_STR("{\"Content-Type\":\"text/csv\"}");
    expect_encoded("raw", &m, "{\"paid\":true}", "Content-Type=text/csv\n" OURS);
    m.content_type = SL_STR("");
    m.headers = SL_NONE;
    expect_encoded("raw", &m, "{\"paid\":true}", OURS);
}

static void our_names_are_ours(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.headers =
        SL_STR("{\"sluice-id\":\"1\",\"a\":\"b\",\"SLUICE-EPOCH\":null,\"Sluice-Id\":\"2\","
               "\"c\":\"d\"}");
    expect_encoded("raw", &m, "{\"paid\":true}", "a=b\nc=d\n" OURS);
    expect_encoded("plain", &m, "{\"paid\":true}",
                   "sluice-id=1\na=b\nSLUICE-EPOCH\nSluice-Id=2\nc=d\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_payload_is_the_value),
        cmocka_unit_test(the_value_is_not_copied),
        cmocka_unit_test(no_payload_is_a_tombstone),
        cmocka_unit_test(no_type_is_no_header),
        cmocka_unit_test(numbers_are_whole),
        cmocka_unit_test(another_content_type_is_said_once),
        cmocka_unit_test(our_names_are_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
