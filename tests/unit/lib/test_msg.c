/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batch.h"

#include "unit/unit.h"

static void a_message_shows_what_it_holds(void **state)
{
    (void)state;
    sl_msg m = { .id = 7,
                 .epoch = 3,
                 .created_us = 1700000000000001,
                 .attempt = 2,
                 .topic = SL_STR("orders"),
                 .key = SL_STR("order:1"),
                 .type = SL_STR("Paid"),
                 .content_type = SL_STR("text/plain"),
                 .headers = SL_STR("{}"),
                 .payload = SL_STR("a\0b") };
    size_t bytes = 99;
    assert_int_equal(sl_msg_id(&m), 7);
    assert_int_equal(sl_msg_epoch(&m), 3);
    assert_int_equal(sl_msg_created_us(&m), 1700000000000001);
    assert_int_equal(sl_msg_attempt(&m), 2);
    assert_string_equal(sl_msg_topic(&m), "orders");
    assert_string_equal(sl_msg_type(&m), "Paid");
    assert_string_equal(sl_msg_content_type(&m), "text/plain");
    assert_string_equal(sl_msg_headers(&m), "{}");
    assert_memory_equal(sl_msg_key(&m, &bytes), "order:1", 7);
    assert_int_equal(bytes, 7);
    assert_memory_equal(sl_msg_payload(&m, &bytes), "a\0b", 3);
    assert_int_equal(bytes, 3);
    assert_non_null(sl_msg_key(&m, NULL));
    assert_non_null(sl_msg_payload(&m, NULL));
}

static void absent_is_null_and_empty_is_not(void **state)
{
    (void)state;
    sl_msg m = { .key = SL_NONE, .headers = SL_NONE, .payload = SL_STR("") };
    size_t bytes = 99;
    assert_null(sl_msg_key(&m, &bytes));
    assert_int_equal(bytes, 0);
    assert_null(sl_msg_headers(&m));
    assert_non_null(sl_msg_payload(&m, &bytes));
    assert_int_equal(bytes, 0);
    m.key = SL_STR("");
    assert_non_null(sl_msg_key(&m, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_shows_what_it_holds),
        cmocka_unit_test(absent_is_null_and_empty_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
