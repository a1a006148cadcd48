/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "capture.h"

#include <pty.h>

static const char *printed(const sl_table *t)
{
    static capture c;
    capture_begin(&c, stdout);
    sl_table_print(t, stdout);
    return capture_end(&c);
}

static void columns_line_up(void **state)
{
    (void)state;
    sl_table t = { 0 };
    sl_table_begin(&t, "node|>lanes|which");
    for (int i = 1; i <= 1000; i *= 1000) {
        sl_table_cell(&t, "n%d", i);
        sl_table_cell(&t, "%d", i);
        sl_table_cell(&t, "0-%d", i);
    }
    assert_string_equal(printed(&t), "  node   lanes  which\n"
                                     "  n1         1  0-1\n"
                                     "  n1000   1000  0-1000\n");
    assert_int_equal(sl_table_width(&t), strlen("  n1000   1000  0-1000"));
    sl_table_fini(&t);
}

static void letters_are_counted_not_bytes(void **state)
{
    (void)state;
    sl_table t = { 0 };
    sl_table_begin(&t, "node|>n");
    sl_table_cell(&t, "%s", "n\xc3\xb6rd");
    sl_table_cell(&t, "1");
    sl_table_cell(&t, "s");
    sl_table_cell(&t, "2");
    assert_string_equal(printed(&t), "  node  n\n"
                                     "  n\xc3\xb6rd  1\n"
                                     "  s     2\n");
    sl_table_fini(&t);
}

/* Nothing follows a line's last letter, and a head may be empty. */
static void empty_cells_leave_no_blanks(void **state)
{
    (void)state;
    sl_table t = { 0 };
    sl_table_begin(&t, "a|b|");
    for (int i = 0; i < 6; i++)
        sl_table_cell(&t, "%s", i == 5 ? "last" : "");
    assert_string_equal(printed(&t), "  a  b\n\n        last\n");
    sl_table_begin(&t, "only"); /* again, from the beginning */
    assert_string_equal(printed(&t), "  only\n");
    sl_table_fini(&t);
}

static void a_name_cannot_command_the_terminal(void **state)
{
    (void)state;
    sl_table t = { 0 };
    sl_table_begin(&t, "node");
    sl_table_cell(&t, "%s", "a\033[2J\nb\x7f");
    assert_string_equal(printed(&t), "  node\n  a?[2J?b?\n");
    sl_table_fini(&t);
}

static const char *cut_to(const char *text, size_t room)
{
    static char got[64];
    sl_table t = { 0 };
    sl_table_begin(&t, "x");
    sl_table_cell_cut(&t, sl_str_of(text), room);
    snprintf(got, sizeof got, "%s", t.v[1]);
    sl_table_fini(&t);
    return got;
}

static void long_cells_end_in_dots(void **state)
{
    (void)state;
    assert_string_equal(cut_to("abcdef", 6), "abcdef");
    assert_string_equal(cut_to("abcdefg", 6), "abc...");
    assert_string_equal(cut_to("\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6", 4),
                        "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6");
    assert_string_equal(cut_to("\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6", 4), "\xc3\xb6...");
    assert_string_equal(cut_to("a\nb", 6), "a?b");
    assert_string_equal(cut_to("", 6), "");
}

static void the_last_column_is_cut_to_fit(void **state)
{
    (void)state;
    sl_table t = { 0 };
    sl_table_begin(&t, "id|error");
    sl_table_cell(&t, "1");
    sl_table_cell(&t, "0123456789");
    sl_table_fit(&t, 16, 5);
    assert_string_equal(printed(&t), "  id  error\n  1   0123456789\n");
    sl_table_fit(&t, 15, 5);
    assert_string_equal(printed(&t), "  id  error\n  1   012345...\n");
    sl_table_fit(&t, 3, 5);
    assert_string_equal(printed(&t), "  id  error\n  1   01...\n");
    sl_table_fini(&t);
}

static void a_terminal_has_a_width(void **state)
{
    (void)state;
    int ends[2];
    struct winsize size = { .ws_row = 24, .ws_col = 77 };
    assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, &size), 0);
    FILE *f = fdopen(ends[1], "w");
    assert_int_equal(sl_terminal_width(f), 77);
    fclose(f);
    close(ends[0]);
    f = tmpfile();
    assert_int_equal(sl_terminal_width(f), 0);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_line_up),
        cmocka_unit_test(letters_are_counted_not_bytes),
        cmocka_unit_test(empty_cells_leave_no_blanks),
        cmocka_unit_test(a_name_cannot_command_the_terminal),
        cmocka_unit_test(long_cells_end_in_dots),
        cmocka_unit_test(the_last_column_is_cut_to_fit),
        cmocka_unit_test(a_terminal_has_a_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
