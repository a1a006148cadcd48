/* SPDX-License-Identifier: Apache-2.0 */
#include "format/format.h"

#include "unit/unit.h"

static const struct {
    const char *plain;
    const char *coded;
} vectors[] = {
    /* RFC 4648, section 10 */
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
    { "\xfb\xff\xbf", "+/+/" },
};

static void the_vectors_of_the_rfc_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(vectors); i++) {
        sl_buf b = { 0 };
        sl_base64_encode(&b, sl_str_of(vectors[i].plain));
        assert_string_equal(sl_buf_text(&b), vectors[i].coded);
        sl_buf_reset(&b);
        assert_true(sl_base64_decode(&b, sl_str_of(vectors[i].coded)));
        assert_string_equal(sl_buf_text(&b), vectors[i].plain);
        sl_buf_fini(&b);
    }
}

static void both_append_to_what_is_there(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    sl_buf_puts(&b, "x=");
    sl_base64_encode(&b, SL_STR("foo"));
    assert_true(sl_base64_decode(&b, SL_STR("YmFy")));
    assert_string_equal(sl_buf_text(&b), "x=Zm9vbar");
    assert_int_equal(b.n, 9);
    sl_buf_fini(&b);
}

static void any_bytes_of_any_length_come_back(void **state)
{
    (void)state;
    char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 167 + 13);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        sl_buf coded = { 0 }, back = { 0 };
        sl_base64_encode(&coded, (sl_str){ bytes, n });
        assert_int_equal(coded.n, (n + 2) / 3 * 4);
        assert_true(sl_base64_decode(&back, (sl_str){ sl_buf_text(&coded), coded.n }));
        assert_int_equal(back.n, n);
        assert_memory_equal(sl_buf_text(&back), bytes, n);
        sl_buf_fini(&coded);
        sl_buf_fini(&back);
    }
}

static void what_encoding_does_not_give_is_refused(void **state)
{
    (void)state;
    const sl_str bad[] = {
        SL_STR("Z"),        SL_STR("Zg"),         SL_STR("Zg="),  SL_STR("Zm9vY"),
        SL_STR("Zm9v\n"),   SL_STR("Zm9v\nYmFy"), SL_STR("===="), SL_STR("Z==="),
        SL_STR("Zg==Zg=="), SL_STR("Zg=v"),       SL_STR("=m9v"), SL_STR("Zm-_"),
        SL_STR("Zm9\0"),    SL_STR("Zm9\x80"),    SL_STR("Zm 9"), SL_STR("Zh=="),
        SL_STR("Zm9="),     SL_STR("Zm9vYh=="),
    };
    sl_buf b = { 0 };
    sl_buf_puts(&b, "kept");
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(sl_base64_decode(&b, bad[i]));
        assert_string_equal(sl_buf_text(&b), "kept");
        assert_int_equal(b.n, 4);
    }
    sl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_rfc_hold),
        cmocka_unit_test(both_append_to_what_is_there),
        cmocka_unit_test(any_bytes_of_any_length_come_back),
        cmocka_unit_test(what_encoding_does_not_give_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
