/* SPDX-License-Identifier: Apache-2.0 */
#include "core/utf8.h"

#include "unit/unit.h"

static void text_is_valid(void **state)
{
    (void)state;
    const sl_str good[] = {
        SL_STR(""),
        SL_STR("a"),
        SL_STR("plain text, longer than a word of eight bytes"),
        SL_STR("nul\0inside"),
        SL_STR("\x7f"),
        SL_STR("\xc2\x80"),
        SL_STR("gr\xc3\xbc\xc3\x9f"),
        SL_STR("\xe0\xa0\x80"),
        SL_STR("\xed\x9f\xbf"),
        SL_STR("\xee\x80\x80"),
        SL_STR("\xef\xbf\xbf"),
        SL_STR("\xf0\x90\x80\x80"),
        SL_STR("\xf4\x8f\xbf\xbf"),
        SL_STR("12345678\xe2\x82\xac"
               "12345678"),
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(sl_is_utf8(good[i]));
        assert_int_equal(sl_utf8_prefix(good[i]), good[i].n);
    }
    assert_true(sl_is_utf8(SL_NONE));
}

static void other_bytes_are_not_and_the_place_is_told(void **state)
{
    (void)state;
    const struct {
        sl_str s;
        size_t prefix;
    } bad[] = {
        { SL_STR("\x80"), 0 },
        { SL_STR("abc\xff"), 3 },
        { SL_STR("12345678\xfe"
                 "12345678"),
          8 },
        { SL_STR("\xc0\x80"), 0 },          /* overlong NUL */
        { SL_STR("a\xc1\xbf"), 1 },         /* overlong */
        { SL_STR("\xe0\x9f\xbf"), 0 },      /* overlong */
        { SL_STR("\xf0\x8f\xbf\xbf"), 0 },  /* overlong */
        { SL_STR("\xed\xa0\x80"), 0 },      /* surrogate */
        { SL_STR("\xed\xbf\xbf"), 0 },      /* surrogate */
        { SL_STR("\xf4\x90\x80\x80"), 0 },  /* beyond U+10FFFF */
        { SL_STR("\xf5\x80\x80\x80"), 0 },  /* beyond U+10FFFF */
        { SL_STR("ab\xc3"), 2 },            /* cut off */
        { SL_STR("ab\xe2\x82"), 2 },        /* cut off */
        { SL_STR("ab\xf0\x9f\x98"), 2 },    /* cut off */
        { SL_STR("\xc3\xbc\xc3(rest"), 2 }, /* second byte */
        { SL_STR("\xe2\x82(rest"), 0 },     /* third byte */
        { SL_STR("\xf0\x9f\x98(rest"), 0 }, /* fourth byte */
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(sl_is_utf8(bad[i].s));
        assert_int_equal(sl_utf8_prefix(bad[i].s), bad[i].prefix);
    }
}

/* Written from the definition, not from the code: decode loosely, then see whether the shortest
 * spelling of that code point is what was read. */
static bool is_sequence(const unsigned char *p, size_t n)
{
    static const unsigned char lead_mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    static const unsigned char lead_bits[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };
    static const unsigned first[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if ((p[0] & ~lead_mask[n] & 0xff) != lead_bits[n])
        return false;
    unsigned c = p[0] & lead_mask[n];
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return false;
        c = c << 6 | (p[i] & 0x3fU);
    }
    return c >= first[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

static void every_sequence_of_up_to_three_bytes_is_judged_right(void **state)
{
    (void)state;
    unsigned char p[3];
    size_t wrong = 0;
    for (unsigned v = 0; v < 1U << 24; v++) {
        p[0] = (unsigned char)(v >> 16);
        p[1] = (unsigned char)(v >> 8);
        p[2] = (unsigned char)v;
        if (p[0] < 0x80) /* covered by the two bytes after it */
            continue;
        bool valid = is_sequence(p, 3) || (is_sequence(p, 2) && p[2] < 0x80);
        wrong += valid != sl_is_utf8((sl_str){ (const char *)p, 3 });
    }
    assert_int_equal(wrong, 0);
}

static void every_sequence_of_four_bytes_with_valid_tails_is_judged_right(void **state)
{
    (void)state;
    unsigned char p[4];
    size_t wrong = 0;
    for (unsigned lead = 0xf0; lead <= 0xff; lead++)
        for (unsigned v = 0; v < 1U << 16; v++) {
            p[0] = (unsigned char)lead;
            p[1] = (unsigned char)(v >> 8);
            p[2] = (unsigned char)v;
            p[3] = (unsigned char)(0x80 | (v * 31 & 0x3f));
            wrong += is_sequence(p, 4) != sl_is_utf8((sl_str){ (const char *)p, 4 });
        }
    assert_int_equal(wrong, 0);
}

static void a_bad_byte_is_found_at_any_offset(void **state)
{
    (void)state;
    char text[40];
    for (size_t n = 1; n <= sizeof text; n++)
        for (size_t at = 0; at < n; at++) {
            memset(text, 'x', sizeof text);
            text[at] = (char)0xff;
            assert_int_equal(sl_utf8_prefix((sl_str){ text, n }), at);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_valid),
        cmocka_unit_test(other_bytes_are_not_and_the_place_is_told),
        cmocka_unit_test(every_sequence_of_up_to_three_bytes_is_judged_right),
        cmocka_unit_test(every_sequence_of_four_bytes_with_valid_tails_is_judged_right),
        cmocka_unit_test(a_bad_byte_is_found_at_any_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
