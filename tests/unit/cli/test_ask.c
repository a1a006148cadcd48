/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include "unit/cli/capture.h"

/* Asks with this on standard input. */
static bool answered(const char *text, bool one, const char *question)
{
    capture c;
    FILE *in = tmpfile();
    assert_non_null(in);
    fputs(text, in);
    rewind(in);
    FILE *saved = stdin;
    stdin = in;
    capture_begin(&c, stderr);
    bool yes = sl_ask("resend", one);
    assert_string_equal(capture_end(&c), question);
    stdin = saved;
    fclose(in);
    return yes;
}

static void only_yes_is_yes(void **state)
{
    (void)state;
    assert_true(answered("y\n", false, "resend them? [y/N] "));
    assert_true(answered("Yes\n", true, "resend it? [y/N] "));
    assert_false(answered("n\n", false, "resend them? [y/N] "));
    assert_false(answered("\n", false, "resend them? [y/N] "));
    assert_false(answered(" y\n", false, "resend them? [y/N] "));
    assert_false(answered("", false, "resend them? [y/N] \n"));
}

static const char *printed(const sl_notes *n)
{
    static capture c;
    capture_begin(&c, stdout);
    sl_notes_print(n, stdout);
    return capture_end(&c);
}

static void notes_are_lines(void **state)
{
    (void)state;
    sl_notes n = { 0 };
    assert_string_equal(printed(&n), "");
    sl_notes_add(&n, "message 7", "no\n\x1b[31m\x7f \xc3\xa9");
    sl_notes_add(&n, "message 8", "");
    assert_string_equal(printed(&n), "message 7: no??[31m? \xc3\xa9\nmessage 8: \n");
    sl_notes_fini(&n);
    assert_int_equal(n.count, 0);
}

static void the_first_ten_are_shown(void **state)
{
    (void)state;
    sl_notes n = { 0 };
    for (int i = 0; i < 13; i++)
        sl_notes_add(&n, "x", i < 10 ? "a" : "b");
    const char *text = printed(&n);
    assert_null(strchr(text, 'b'));
    assert_string_equal(text + strlen("x: a\n") * 10, "... and 3 more\n");
    assert_int_equal(n.count, 13);
    sl_notes_fini(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_yes_is_yes),
        cmocka_unit_test(notes_are_lines),
        cmocka_unit_test(the_first_ten_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
