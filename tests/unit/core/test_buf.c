/* SPDX-License-Identifier: Apache-2.0 */
#include "core/buf.h"

#include "unit/unit.h"

static void an_unused_buffer_reads_as_empty_text(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    assert_string_equal(sl_buf_text(&b), "");
    sl_buf_reset(&b);
    sl_buf_fini(&b);
    assert_string_equal(sl_buf_text(&b), "");
}

static void pieces_add_up(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    sl_buf_puts(&b, "id=");
    sl_buf_printf(&b, "%d,%s", 42, "x");
    sl_buf_putc(&b, '!');
    sl_buf_put(&b, "abc", 2);
    sl_buf_put(&b, NULL, 0);
    sl_buf_printf(&b, "%s", "");
    assert_string_equal(sl_buf_text(&b), "id=42,x!ab");
    assert_int_equal(b.n, 10);
    sl_buf_fini(&b);
}

static void bytes_may_be_zero(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    sl_buf_put(&b, "a\0b", 3);
    sl_buf_putc(&b, '\0');
    assert_int_equal(b.n, 4);
    assert_memory_equal(b.p, "a\0b\0", 5); /* and one more that does not count */
    sl_buf_fini(&b);
}

static void it_grows_over_every_boundary_and_stays_terminated(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    for (size_t i = 0; i < 5000; i++) {
        sl_buf_putc(&b, (char)('a' + i % 26));
        assert_int_equal(b.p[b.n], '\0');
        assert_true(b.cap > b.n);
    }
    assert_int_equal(b.p[4999], 'a' + 4999 % 26);
    sl_buf_reset(&b);
    for (int i = 0; i < 700; i++)
        sl_buf_printf(&b, "%07d", i);
    assert_int_equal(b.n, 4900);
    assert_memory_equal(b.p + 4893, "0000699", 8);
    sl_buf_fini(&b);
}

static void reset_forgets_the_bytes_and_keeps_the_memory(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    sl_buf_puts(&b, "something");
    char *p = b.p;
    sl_buf_reset(&b);
    assert_string_equal(sl_buf_text(&b), "");
    sl_buf_puts(&b, "else");
    assert_ptr_equal(b.p, p);
    assert_string_equal(sl_buf_text(&b), "else");
    sl_buf_fini(&b);
    assert_null(b.p);
}

static void room_can_be_filled_by_hand(void **state)
{
    (void)state;
    sl_buf b = { 0 };
    sl_buf_puts(&b, "ab");
    char *at = sl_buf_room(&b, 1000);
    memset(at, 'x', 1000);
    b.n += 1000;
    sl_buf_putc(&b, '.');
    assert_int_equal(b.n, 1003);
    assert_memory_equal(b.p, "abxx", 4);
    assert_memory_equal(b.p + 1000, "xx.", 4);
    sl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_buffer_reads_as_empty_text),
        cmocka_unit_test(pieces_add_up),
        cmocka_unit_test(bytes_may_be_zero),
        cmocka_unit_test(it_grows_over_every_boundary_and_stays_terminated),
        cmocka_unit_test(reset_forgets_the_bytes_and_keeps_the_memory),
        cmocka_unit_test(room_can_be_filled_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
