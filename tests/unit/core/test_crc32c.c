/* SPDX-License-Identifier: Apache-2.0 */
#include "core/crc32c.h"

#include "unit/unit.h"

/* RFC 3720, B.4, and the check value of all catalogues of CRCs. */
static void the_vectors_of_the_rfc(void **state)
{
    (void)state;
    uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];
    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++) {
        up[i] = i;
        down[i] = (uint8_t)(31 - i);
    }
    const uint8_t read_command[48] = {
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
        0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
        0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0,
    };
    assert_int_equal(sl_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(sl_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(sl_crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(sl_crc32c(0, down, 32), 0x113fdb5c);
    assert_int_equal(sl_crc32c(0, read_command, 48), 0xd9963a56);
    assert_int_equal(sl_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sl_crc32c(0, "", 0), 0);
}

static void pieces_are_as_good_as_the_whole(void **state)
{
    (void)state;
    const char *text = "123456789";
    for (size_t cut = 0; cut <= 9; cut++)
        assert_int_equal(sl_crc32c(sl_crc32c(0, text, cut), text + cut, 9 - cut), 0xe3069283);
}

static void every_flipped_bit_shows(void **state)
{
    (void)state;
    uint8_t block[512];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7);
    uint32_t was = sl_crc32c(0, block, sizeof block);
    for (size_t bit = 0; bit < 8 * sizeof block; bit++) {
        block[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_not_equal(sl_crc32c(0, block, sizeof block), was);
        block[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_rfc),
        cmocka_unit_test(pieces_are_as_good_as_the_whole),
        cmocka_unit_test(every_flipped_bit_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
