/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "unit/unit.h"

#include <pty.h>

#define END "(end)"

/* Runs fn with standard error on a terminal (or a pipe), and gives what it wrote. A terminal hands
 * it on when it pleases: read up to a mark. */
static size_t written(bool terminal, void (*fn)(void), char *out, size_t room)
{
    int ends[2];
    assert_int_equal(terminal ? openpty(&ends[0], &ends[1], NULL, NULL, NULL) : pipe(ends), 0);
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    fn();
    fputs(END, stderr);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    size_t n = 0;
    for (char *end = NULL; !end; end = strstr(out, END)) {
        ssize_t got = read(ends[0], out + n, room - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
        out[n] = '\0';
    }
    close(ends[0]);
    close(ends[1]);
    return n - strlen(END);
}

static void of_a_file(void)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), 200), 0);
    sl_progress p;
    sl_progress_begin(&p, "pushing", f);
    sl_progress_step(&p, 7, 100);
    sl_progress_end(&p);
    fclose(f);
}

static void of_a_stream(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FILE *f = fdopen(ends[0], "r");
    sl_progress p;
    sl_progress_begin(&p, "pushing", f);
    sl_progress_step(&p, 7, 100);
    sl_progress_end(&p);
    fclose(f);
    close(ends[1]);
}

static void of_a_number(void)
{
    sl_progress p;
    sl_progress_begin_of(&p, "resending", 40);
    sl_progress_step(&p, 10, 10);
    sl_progress_end(&p);
}

static void quietly(void)
{
    sl_progress p;
    sl_progress_begin(&p, NULL, stdin);
    sl_progress_step(&p, 7, 100);
    sl_progress_end(&p);
}

static void a_terminal_sees_a_bar(void **state)
{
    (void)state;
    char out[512];
    written(true, of_a_file, out, sizeof out);
    assert_non_null(strstr(out, "pushing [###############...............]  50% 7 messages"));
    assert_non_null(strstr(out, "\r\033[K")); /* and the line is wiped at the end */
}

static void a_number_of_messages_makes_a_bar_too(void **state)
{
    (void)state;
    char out[512];
    written(true, of_a_number, out, sizeof out);
    assert_non_null(strstr(out, "resending [#######.......................]  25% 10 messages"));
}

static void a_stream_has_no_end_to_measure(void **state)
{
    (void)state;
    char out[512];
    written(true, of_a_stream, out, sizeof out);
    assert_non_null(strstr(out, "pushing 7 messages"));
    assert_null(strchr(out, '%'));
}

static void nothing_else_sees_anything(void **state)
{
    (void)state;
    char out[512];
    assert_int_equal(written(false, of_a_file, out, sizeof out), 0);
    assert_int_equal(written(true, quietly, out, sizeof out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_sees_a_bar),
        cmocka_unit_test(a_number_of_messages_makes_a_bar_too),
        cmocka_unit_test(a_stream_has_no_end_to_measure),
        cmocka_unit_test(nothing_else_sees_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
