/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include "unit/cli/capture.h"

static void wraps(const char *text, size_t column, const char *prefix, size_t width,
                  const char *expected)
{
    sl_buf out = { 0 };
    sl_help_wrap(&out, text, column, prefix, width);
    assert_string_equal(sl_buf_text(&out), expected);
    sl_buf_fini(&out);
}

static void words_are_wrapped(void **state)
{
    (void)state;
    wraps("", 0, "", 10, "");
    wraps("one two three", 0, "", 7, "one two\nthree");
    wraps("one two three", 0, "", 13, "one two three");
    wraps("one two three", 4, "  ", 7,
          "one\n  two\n  three"); /* the first stands at column 4 */
    wraps("# one two", 0, "# ", 6, "# one\n# two");
    wraps("averylongword b", 0, "  ", 5, "averylongword\n  b");
    wraps("  a   b  ", 0, "", 10, "a b");
}

static const char *no_line_is_longer_than(const char *text, size_t width)
{
    for (const char *p = text; *p;
         p += p[strcspn(p, "\n")] ? strcspn(p, "\n") + 1 : strcspn(p, "\n"))
        assert_true(strcspn(p, "\n") <= width);
    return text;
}

static void the_program_lists_its_commands(void **state)
{
    (void)state;
    capture c;

    capture_begin(&c, stdout);
    sl_help_program(stdout);
    const char *text = no_line_is_longer_than(capture_end(&c), 80);
    for (const sl_cmd *const *cmd = sl_cmd_all; *cmd; cmd++) {
        assert_non_null(strstr(text, (*cmd)->name));
        assert_non_null(strstr(text, (*cmd)->summary));
    }
    assert_null(strchr(text, '\033')); /* bold is for terminals */
}

static void each_command_shows_its_flags(void **state)
{
    (void)state;
    for (const sl_cmd *const *cmd = sl_cmd_all; *cmd; cmd++) {
        capture c;
        capture_begin(&c, stdout);
        sl_help_command(*cmd, stdout);
        const char *text = capture_end(&c);

        assert_non_null(strstr(text, "Usage: sluice "));
        assert_non_null(strstr(text, "-h, --help"));
        assert_true(!(*cmd)->groups == !strstr(text, "--config FILE"));
        assert_true(!((*cmd)->groups & SL_FOR_DB) == !strstr(text, "  --db URL "));
        assert_true(!((*cmd)->groups & SL_FOR_RUN) == !strstr(text, "  --workers N "));
        for (const sl_opt *o = (*cmd)->opts; o && o->name; o++) {
            char *flag = sl_cli_flag_name(o);
            assert_non_null(strstr(text, flag));
            free(flag);
        }
    }
}

static void defaults_are_shown(void **state)
{
    (void)state;
    capture c;

    capture_begin(&c, stdout);
    sl_help_command(sl_cmd_named("run"), stdout);
    const char *text = capture_end(&c);
    assert_non_null(strstr(text, "(default: 8M)"));
    assert_null(strstr(text, "(default: false)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_wrapped),
        cmocka_unit_test(the_program_lists_its_commands),
        cmocka_unit_test(each_command_shows_its_flags),
        cmocka_unit_test(defaults_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
