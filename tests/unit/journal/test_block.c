/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/block.h"

#include "core/clock.h"
#include "unit/unit.h"

enum { SALT = 99, NUMBER = 1234 };

static const sl_jb_head head = { 7, SALT, 1200, 5, 8192, -1, 2, 3, 4, "node 1" };

static sl_jb some_block(size_t count)
{
    sl_jb b = { .type = SL_JB_SENT, .count = count, .part = 2, .parts = 5 };
    b.number = NUMBER;
    b.synced = NUMBER - 3;
    b.session = -8;
    for (size_t i = 0; i < count; i++)
        b.pairs[i] = (sl_jb_pair){ INT64_MAX - (int64_t)i, INT64_MIN + (int64_t)i };
    return b;
}

static void a_head_comes_back(void **state)
{
    (void)state;
    uint8_t bytes[SL_JB_BYTES];
    sl_jb_head got;
    sl_jb_put_head(bytes, &head);
    assert_int_equal(sl_jb_get_head(bytes, &got), SL_JB_GOOD);
    assert_string_equal(got.node, "node 1");
    assert_true(got.identity == 7 && got.salt == SALT && got.first == 1200 && got.inode == 5);
    assert_true(got.file_bytes == 8192 && got.began_us == -1 && got.file_began_us == 2);
    assert_true(got.rotations == 3 && got.carried == 4);

    sl_jb_head longest = head;
    memset(longest.node, 'n', SL_JB_NODE_BYTES);
    sl_jb_put_head(bytes, &longest);
    assert_int_equal(sl_jb_get_head(bytes, &got), SL_JB_GOOD);
    assert_string_equal(got.node, longest.node);
}

static void no_bit_of_a_head_may_change(void **state)
{
    (void)state;
    uint8_t bytes[SL_JB_BYTES];
    sl_jb_head got;
    sl_jb_put_head(bytes, &head);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(sl_jb_get_head(bytes, &got), bit < 64 ? SL_JB_ALIEN : SL_JB_BAD);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void a_block_comes_back(void **state)
{
    (void)state;
    uint8_t bytes[SL_JB_BYTES];
    for (size_t count = 0; count <= SL_JB_PAIRS; count++) {
        sl_jb b = some_block(count), got;
        sl_jb_put(bytes, SALT, &b);
        assert_int_equal(sl_jb_get(bytes, SALT, NUMBER, &got), SL_JB_GOOD);
        assert_true(got.type == b.type && got.count == count && got.part == 2 &&
                    got.parts == 5 && got.number == NUMBER && got.synced == NUMBER - 3 &&
                    got.session == -8);
        assert_memory_equal(got.pairs, b.pairs, count * sizeof *b.pairs);
    }
}

static void no_bit_of_a_block_may_change(void **state)
{
    (void)state;
    uint8_t bytes[SL_JB_BYTES];
    sl_jb b = some_block(3), got;
    sl_jb_put(bytes, SALT, &b);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(sl_jb_get(bytes, SALT, NUMBER, &got), SL_JB_BAD);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void a_block_without_its_end_is_torn(void **state)
{
    (void)state;
    uint8_t whole[SL_JB_BYTES], part[SL_JB_BYTES] = { 0 };
    sl_jb b = some_block(SL_JB_PAIRS), got;
    sl_jb_put(whole, SALT, &b);
    assert_int_equal(sl_jb_get(part, SALT, NUMBER, &got), SL_JB_EMPTY);
    bool begun = false;
    for (size_t n = 0; n < SL_JB_BYTES - 1; n++) {
        part[n] = whole[n];
        begun |= part[n] != 0;
        assert_int_equal(sl_jb_get(part, SALT, NUMBER, &got), begun ? SL_JB_TORN : SL_JB_EMPTY);
    }
    part[SL_JB_BYTES - 1] = whole[SL_JB_BYTES - 1];
    assert_int_equal(sl_jb_get(part, SALT, NUMBER, &got), SL_JB_GOOD);
}

static void blocks_of_other_files_and_places_are_bad(void **state)
{
    (void)state;
    uint8_t bytes[SL_JB_BYTES];
    sl_jb b = some_block(1), got;
    sl_jb_put(bytes, SALT, &b);
    assert_int_equal(sl_jb_get(bytes, SALT + 1, NUMBER, &got), SL_JB_BAD);
    assert_int_equal(sl_jb_get(bytes, SALT, NUMBER + 1, &got), SL_JB_BAD);
    assert_int_equal(sl_jb_get(bytes, SALT, NUMBER - 1, &got), SL_JB_BAD);
}

static void what_makes_no_sense_is_bad(void **state)
{
    (void)state;
    uint8_t bytes[SL_JB_BYTES];
    sl_jb got, b = some_block(1);
    b.type = (sl_jb_type)(SL_JB_FAILED + 1);
    sl_jb_put(bytes, SALT, &b);
    assert_int_equal(sl_jb_get(bytes, SALT, NUMBER, &got), SL_JB_BAD);
    b = some_block(1);
    b.synced = NUMBER + 1;
    sl_jb_put(bytes, SALT, &b);
    assert_int_equal(sl_jb_get(bytes, SALT, NUMBER, &got), SL_JB_BAD);
}

/* A stray zero checksum must not make a block of zeros look written, whatever the salt. */
static void zeros_are_empty_with_any_salt(void **state)
{
    (void)state;
    uint8_t zeros[SL_JB_BYTES] = { 0 };
    sl_jb got;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(sl_jb_get(zeros, sl_random(), (uint64_t)i, &got), SL_JB_EMPTY);
}

static void garbage_is_never_good(void **state)
{
    (void)state;
    uint8_t bytes[SL_JB_BYTES];
    sl_jb got;
    sl_jb_head h;
    for (int i = 0; i < 2000; i++) {
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)sl_random();
        assert_int_not_equal(sl_jb_get(bytes, SALT, NUMBER, &got), SL_JB_GOOD);
        assert_int_equal(sl_jb_get_head(bytes, &h), SL_JB_ALIEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_comes_back),
        cmocka_unit_test(no_bit_of_a_head_may_change),
        cmocka_unit_test(a_block_comes_back),
        cmocka_unit_test(no_bit_of_a_block_may_change),
        cmocka_unit_test(a_block_without_its_end_is_torn),
        cmocka_unit_test(blocks_of_other_files_and_places_are_bad),
        cmocka_unit_test(what_makes_no_sense_is_bad),
        cmocka_unit_test(zeros_are_empty_with_any_salt),
        cmocka_unit_test(garbage_is_never_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
