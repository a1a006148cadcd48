/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "unit/cli/capture.h"
#include "unit/journal/journals.h"

#include <jansson.h>

static capture out, errors;

static int run(const char *a, const char *b)
{
    char *words[] = { (char *)(uintptr_t) "journal", (char *)(uintptr_t)a, (char *)(uintptr_t)b,
                      NULL };
    sl_cli cli;
    sl_err err = { 0 };
    assert_int_equal(
        sl_cli_parse(&cli, sl_cmd_named("journal"), a ? b ? 3 : 2 : 1, words, &err), SL_OK);
    capture_begin(&out, stdout);
    capture_begin(&errors, stderr);
    int status = cli.cmd->run(&cli);
    capture_end(&errors);
    capture_end(&out);
    sl_cli_fini(&cli);
    return status;
}

static sl_journal *some_journal(void)
{
    sl_journal *j = open_small(5);
    must_send(j, 10, 4);
    say(j, 10, 1, SL_JOURNAL_SENT);
    say(j, 11, 1, SL_JOURNAL_FAILED);
    return j;
}

static void expect(const char *text)
{
    if (!strstr(out.text, text))
        fail_msg("no \"%s\" in:\n%s", text, out.text);
}

static void it_shows_what_is_unknown(void **state)
{
    (void)state;
    sl_journal *j = some_journal();
    char identity[40];
    snprintf(identity, sizeof identity, "journal   %lld\n",
             (long long)sl_journal_stamp_now(j).journal);
    sl_journal_close(j);
    assert_int_equal(run(path, NULL), 0);
    expect(identity);
    expect("node      n1\n");
    expect("state     whole\n");
    expect("in use    no\n");
    expect("sessions  1, the last is 5, of 2");
    expect("5 of 16 blocks used, rotated 0 times\n");
    expect("messages  2 sending, 1 sent, 1 failed\n");
    expect("\n  12     52  unknown\n  13     53  unknown\n");
    assert_null(strstr(out.text, "10     50"));
}

/* And the node that has it is not disturbed. */
static void it_reads_beside_a_node(void **state)
{
    (void)state;
    sl_journal *j = some_journal();
    assert_int_equal(run(path, NULL), 0);
    expect("in use    yes\n");
    expect("\n  12     52  sending\n");
    must_send(j, 100, 1);
    sl_journal_close(j);
}

static void json_names_all(void **state)
{
    (void)state;
    sl_journal_close(some_journal());
    assert_int_equal(run("--json", path), 0);
    json_t *all = json_loads(out.text, 0, NULL);
    assert_non_null(all);
    assert_true(json_is_true(json_object_get(all, "whole")));
    assert_true(json_is_null(json_object_get(all, "damage")));
    assert_string_equal(json_string_value(json_object_get(all, "node")), "n1");
    static const char *const states[] = { "sent", "failed", "sending", "sending" };
    json_t *messages = json_object_get(all, "messages");
    assert_int_equal(json_array_size(messages), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *m = json_array_get(messages, i);
        assert_int_equal(json_integer_value(json_object_get(m, "id")), 10 + i);
        assert_int_equal(json_integer_value(json_object_get(m, "epoch")), 50 + i);
        assert_string_equal(json_string_value(json_object_get(m, "state")), states[i]);
    }
    json_t *session = json_array_get(json_object_get(all, "sessions"), 0);
    assert_int_equal(json_integer_value(json_object_get(session, "session")), 5);
    json_decref(all);
}

static void a_damaged_one_is_read_as_far_as_it_goes(void **state)
{
    (void)state;
    sl_journal_close(some_journal());
    image im = load(path);
    im.p[2 * SL_JB_BYTES + 60] ^= 1;
    store(&im);
    assert_int_equal(run(path, NULL), 1);
    expect("state     damaged: block 2 is damaged\n");
    expect("messages  0 sending, 1 sent, 1 failed\n");
    assert_int_equal(run("--json", path), 1);
    expect("\"whole\":false,\"damage\":\"block 2 is damaged\"");
    im.p[20] ^= 1;
    store(&im);
    assert_int_equal(run(path, NULL), 1);
    expect("state     damaged: its head is damaged: nothing can be read\n");
    free(im.p);
}

static void what_it_does_not_take(void **state)
{
    (void)state;
    assert_int_equal(run(NULL, NULL), 2);
    assert_int_equal(run(path, path), 2);
    assert_int_equal(run(path, NULL), 1);
    assert_non_null(strstr(errors.text, "No such file"));
    assert_int_equal(run("/dev/null", NULL), 1);
    assert_non_null(strstr(errors.text, "is not a file"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_shows_what_is_unknown), TEST(it_reads_beside_a_node),
        TEST(json_names_all),           TEST(a_damaged_one_is_read_as_far_as_it_goes),
        TEST(what_it_does_not_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
