/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/format/encoded.h"

#define OURS "sluice-id=42\nsluice-type=paid\nsluice-epoch=7\ncontent-type=application/json\n"

static void it_is_the_line_of_a_file_without_the_delivery(void **state)
{
    (void)state;
    sl_msg m = a_message();
    expect_encoded("json", &m,
                   "{\"id\":42,\"topic\":\"orders\",\"key\":\"order:9182\",\"type\":\"paid\","
                   "\"payload\":{\"paid\":true},\"headers\":{},\"epoch\":7}",
                   OURS);
}

static void a_message_has_one_form(void **state)
{
    (void)state;
    sl_msg m = a_message(), again = a_message();
    again.attempt = 9;
    again.lane = 5;
    again.created_us = 1;
    sl_encoder *e[] = { encoder_of("json"), encoder_of("json") };
    sl_encoded got[2];
    char why[160];
    assert_true(sl_encode(e[0], &m, &got[0], why));
    assert_true(sl_encode(e[1], &again, &got[1], why));
    assert_true(sl_str_eq(got[0].value, got[1].value));
    sl_encoder_free(e[0]);
    sl_encoder_free(e[1]);
}

/* What the value is, only we know: the producer speaks of the payload. */
static void the_content_type_is_that_of_the_envelope(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.content_type = SL_STR("application/octet-stream");
    m.headers = SL_STR("{\"Content-Type\":\"a/b\",\n\"c\":\"d\"}");
    m.payload = SL_STR("\xff");
    m.key = SL_NONE;
    expect_encoded("json", &m,
                   "{\"id\":42,\"topic\":\"orders\",\"key\":null,\"type\":\"paid\","
                   "\"content_type\":\"application/octet-stream\",\"payload_base64\":\"/w==\","
                   "\"headers\":{\"Content-Type\":\"a/b\", \"c\":\"d\"},\"epoch\":7}",
                   "c=d\n" OURS);
}

static void no_payload_is_no_tombstone(void **state)
{
    (void)state;
    sl_msg m = a_message();
    m.payload = SL_NONE;
    expect_encoded("json", &m,
                   "{\"id\":42,\"topic\":\"orders\",\"key\":\"order:9182\",\"type\":\"paid\","
                   "\"payload\":null,\"headers\":{},\"epoch\":7}",
                   OURS);
}

/* A huge value between small ones: its memory may go, nothing else. */
static void a_huge_value_leaves_nothing_behind(void **state)
{
    (void)state;
    enum { HUGE_BYTES = 6 * 1024 * 1024 };
    sl_encoder *e = encoder_of("json");
    sl_msg small = a_message(), huge = a_message();
    char *payload = malloc(HUGE_BYTES);
    memset(payload, 0xff, HUGE_BYTES);
    huge.payload = (sl_str){ payload, HUGE_BYTES };
    sl_encoded got;
    char why[160];
    assert_true(sl_encode(e, &small, &got, why));
    size_t before = got.value.n;
    assert_true(sl_encode(e, &huge, &got, why));
    assert_true(got.value.n > HUGE_BYTES / 3 * 4);
    assert_true(sl_encode(e, &small, &got, why));
    assert_int_equal(got.value.n, before);
    free(payload);
    sl_encoder_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_line_of_a_file_without_the_delivery),
        cmocka_unit_test(a_message_has_one_form),
        cmocka_unit_test(the_content_type_is_that_of_the_envelope),
        cmocka_unit_test(no_payload_is_no_tombstone),
        cmocka_unit_test(a_huge_value_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
